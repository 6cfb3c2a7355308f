"""Many servers by one request: as many as are possible, in a few statements, within the quota."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, text

from climate.compute.errors import BadRequest, NoMoreAddresses, QuotaExceeded
from climate.compute.models.flavor import Flavor
from climate.compute.models.image import ACTIVE, Image
from climate.compute.models.request import Spec
from climate.compute.models.server import BUILD, ERROR
from climate.compute.placement import decisions
from climate.compute.projects.quota_check import MOST_AT_ONCE
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Filter, Rules
from climate.compute.servers import create
from climate.compute.store.projects import images
from tests.compute import network_factory
from tests.compute.cloud_factory import HALF, HUGE, TINY, Place, node, place, request

SMALL = Flavor("s", "small", 1, 1, 0)


def limit(here: Place, instances: int, cores: int = -1, project_id: str = "demo") -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(
            text(
                "INSERT INTO compute_quotas (project_id, instances, cores, ram_mb) VALUES (:id, :instances, :cores, -1)"
            ),
            {"id": project_id, "instances": instances, "cores": cores},
        )


def test_a_build_is_as_many_statements_as_one_server(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [node("n1", vcpus=1000, memory_mb=10**6)]) as here:
        limit(here, -1)
        here.boot(networks=())
        seen: list[str] = []
        event.listen(here.compute.engine, "before_cursor_execute", lambda *call: seen.append(call[2]))
        here.boot(SMALL, networks=())
        one = len(seen)
        made = here.boot(SMALL, count=300, least=300, networks=())
        assert len(seen) == 2 * one
        assert one < 20
        assert [server.launch_index for server in made] == list(range(300))
        assert here.count("compute_actions", "action = 'create'") == 302
        assert here.drift() == []


def test_of_a_build_there_is_what_finds_a_node(here: Place) -> None:
    made = here.boot(HALF, count=40, least=2, networks=())
    assert (len(made), {server.status for server in made}) == (12, {BUILD})
    assert [server.name for server in made] == [f"s-{number}" for number in range(1, 13)]
    assert here.drift() == []


def test_of_a_build_there_is_what_finds_an_address(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        small = network_factory.network(conn, "small", "192.0.2.0/29")
    assert len(here.boot(count=8, least=2, networks=(small,))) == 5
    with pytest.raises(NoMoreAddresses):
        here.boot(networks=(small,))
    assert here.count("compute_servers") == 5
    assert here.drift() == []


def test_less_than_the_least_is_nothing(here: Place) -> None:
    made = here.boot(HALF, count=40, least=13, networks=())
    assert (len(made), {server.status for server in made}) == (13, {ERROR})
    assert here.count("compute_nodes", "used_servers > 0") == 0


def test_of_a_build_there_is_what_the_quota_allows(here: Place) -> None:
    limit(here, 5, cores=4)
    assert len(here.boot(count=10, least=2, networks=())) == 4
    with pytest.raises(QuotaExceeded, match=r"for cores: Requested 1, .* 4 of 4 cores\. You cannot run any more"):
        here.boot(networks=())


def test_a_refusal_says_how_many_would_be_allowed(here: Place) -> None:
    limit(here, 5)
    here.boot(count=2, least=2, networks=())
    expected = r"Requested 4, but already used 2 of 5 instances\. You can only run 3 more instances of this type\."
    with pytest.raises(QuotaExceeded, match=expected):
        here.boot(count=4, least=4, networks=())


def test_a_million_is_refused_whatever_the_quota(here: Place) -> None:
    limit(here, -1)
    with pytest.raises(BadRequest, match=f"At most {MOST_AT_ONCE}"):
        here.boot(count=10**6, least=10**6)
    assert here.count("compute_servers") == 0


def test_builds_at_once_share_the_quota_without_a_gap(here: Place) -> None:
    limit(here, 7)

    def one(_: int) -> int:
        try:
            return len(here.boot(count=3, least=1, networks=()))
        except QuotaExceeded:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(8))) == 7
    assert here.count("compute_servers") == 7


def asked(here: Place, **wanted: Any) -> Spec:
    """What the scheduler is told of such a request."""
    specs: list[Spec] = []

    def schedule(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        specs.append(spec)
        return select(hosts, spec, count, rules)

    create.boot(replace(here.compute, schedule=schedule), request(wanted.pop("flavor", TINY), networks=(), **wanted))
    return specs[0]


def test_the_scheduler_gets_all_nodes(here: Place) -> None:
    image = Image(str(uuid4()), "i", "demo", ACTIVE, "private", "raw", "bare", 0, None, {"architecture": "x86_64"})
    with here.compute.engine.begin() as conn:
        images.insert(conn, image)
    first = here.boot(HALF, networks=())[0]
    theirs = here.boot(project_id="other", networks=())[0]
    hints = {"same_host": first.id, "different_host": [theirs.id, str(uuid4())]}
    spec = asked(here, image_id=image.id, hints=hints, count=2, least=2)
    assert spec.image == {"architecture": "x86_64"}
    assert (spec.flavor, len(spec.server_ids), spec.build_id[:2]) == (TINY, 2, "r-")
    assert spec.same_host == {first.node_id}
    assert spec.different_host == frozenset(), "where another project's server is, is not told"
    assert spec.other_flavors == frozenset(), "no filter asks"
    plain = asked(here)
    assert (plain.same_host, plain.different_host, plain.group) == (None, None, None)


def test_other_flavors_are_looked_up_where_a_filter_asks(here: Place) -> None:
    first = here.boot(HALF, networks=())[0]
    everything = Filter("TypeAffinityFilter", lambda hosts, spec, options: hosts.up)
    here.compute = replace(here.compute, rules=Rules((everything,), ()))
    assert asked(here, flavor=HALF).other_flavors == frozenset()
    assert asked(here).other_flavors == {first.node_id}


@pytest.mark.parametrize("hint", ["same_host", "different_host"])
@pytest.mark.parametrize("value", ["no id", 7, [1], {"a": 1}])
def test_a_hint_that_names_no_server_is_refused(here: Place, hint: str, value: object) -> None:
    with pytest.raises(BadRequest, match=hint):
        here.boot(hints={hint: value})


def test_a_refused_build_is_explained(here: Place) -> None:
    made = here.boot(HUGE, count=2, least=2)
    kept = [decisions.of(here.compute, server.id) for server in made]
    assert kept[0] == kept[1]
    assert (kept[0][0].kind, kept[0][0].build_id) == (decisions.REFUSED, made[0].build_id)
    assert "RamFilter" in (kept[0][0].error or "")
    assert kept[0][0].trail


def test_decisions_are_forgotten_with_their_servers(here: Place) -> None:
    made = [here.boot(HUGE)[0] for _ in range(3)]
    assert decisions.forget(here.compute) == 0
    with here.compute.engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_servers WHERE id = :id"), {"id": made[1].id})
    assert decisions.forget(here.compute) == 1
    assert decisions.of(here.compute, made[1].id) == []
    assert [len(decisions.of(here.compute, made[place].id)) for place in (0, 2)] == [1, 1]
