"""Every route of Block Storage, asked by who has no part in it: nobody sees or touches another project's volumes."""

from collections.abc import Mapping

import pytest

from tests.api.compute.api_clients import Person, World
from tests.api.volume.conftest import leased

V = "/volume/v3"
ONE, QUOTA = f"{V}/volumes/<volume_id>", f"{V}/os-quota-sets/<project_id>"
ASKERS = ("nobody", "stranger", "without a role", "reader", "member", "admin")

FOR_ALL = (401, 200, 403, 200, 200, 200)
QUOTAS = (401, 403, 403, 200, 200, 200)

MATRIX: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("GET", "/volume"): (200,) * 6,
    ("GET", V): (200,) * 6,
    ("GET", f"{V}/volumes"): FOR_ALL,
    ("GET", f"{V}/volumes/detail"): FOR_ALL,
    # An empty body; only leases create volumes in this deployment.
    ("POST", f"{V}/volumes"): (401, 400, 403, 403, 400, 400),
    ("GET", ONE): (401, 404, 403, 200, 200, 200),
    # Its lease is not over.
    ("DELETE", ONE): (401, 404, 403, 403, 409, 409),
    ("GET", f"{V}/limits"): FOR_ALL,
    ("GET", QUOTA): QUOTAS,
    ("GET", f"{QUOTA}/defaults"): QUOTAS,
}


def test_every_route_is_in_the_matrix(there: World) -> None:
    rules = [rule for rule in there.app.url_map.iter_rules() if rule.rule.startswith("/volume")]
    served = {(method, rule.rule) for rule in rules for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    assert served == set(MATRIX)


@pytest.mark.usefixtures("storage")
def test_who_gets_what(there: World, member: Person) -> None:
    leased(there, member, name="hidden-lease")
    before = member.get(f"{V}/volumes/detail")
    one = before["volumes"][0]
    for place, name in enumerate(ASKERS):
        found = {}
        for method, rule in MATRIX:
            path = rule.replace("<volume_id>", one["id"]).replace("<project_id>", "project")
            answer = Person(there.app, name)(method, path)
            found[method, rule] = answer.status_code
            told = answer.get_data(as_text=True).replace(path, "")
            hidden = name in ASKERS[:3] and (one["name"] in told or one["metadata"]["reservation_id"] in told)
            assert not hidden, (name, method, rule)
        assert found == {route: statuses[place] for route, statuses in MATRIX.items()}, name
    assert member.get(f"{V}/volumes/detail") == before
