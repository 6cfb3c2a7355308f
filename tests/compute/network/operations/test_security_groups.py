"""Security groups by operations: names at boot, and limits for many requests at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from climate.compute.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from climate.compute.models.security_group import INGRESS, MOST_GROUPS, SecurityRule, default_id
from climate.compute.network.operations import security_groups
from tests.compute.recorded_networks import Wired, wired_place


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def test_groups_are_named_by_name_or_id_within_a_project(wired: Wired) -> None:
    compute = wired.compute
    web = security_groups.create(compute, "demo", "web", "")
    assert security_groups.ids_of(compute, "demo", ()) is None
    assert security_groups.ids_of(compute, "demo", ("default", default_id("demo"))) is None
    both = (web.id, default_id("demo"))
    assert security_groups.ids_of(compute, "demo", ("web", "default", web.id)) == both
    with pytest.raises(BadRequest, match="web not found for project other"):
        security_groups.ids_of(compute, "other", ("web",))
    security_groups.create(compute, "demo", "web", "")
    with pytest.raises(Conflict, match="Use an ID"):
        security_groups.ids_of(compute, "demo", ("web",))
    assert security_groups.ids_of(compute, "demo", (web.id,)) == (web.id,)


def test_groups_of_others_are_not_found(wired: Wired) -> None:
    web = security_groups.create(wired.compute, "demo", "web", "")
    other = ("other", "other")
    for attempt in (
        lambda: security_groups.get(wired.compute, web.id, *other),
        lambda: security_groups.delete(wired.compute, web.id, other),
        lambda: security_groups.change(wired.compute, web.id, other, {"name": "n"}),
        lambda: security_groups.add_rule(wired.compute, SecurityRule("", web.id, INGRESS, 4), other),
        lambda: security_groups.delete_rule(wired.compute, web.rules[0].id, other),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert security_groups.get(wired.compute, web.id, None, "other") == web


def test_the_quota_holds_for_requests_at_once(wired: Wired) -> None:
    def attempt(number: int) -> bool:
        try:
            security_groups.create(wired.compute, "demo", f"g{number}", "")
        except QuotaExceeded:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(attempt, range(MOST_GROUPS + 6)))
    assert made.count(True) == MOST_GROUPS
