"""A Nova whose aggregates Blazar created: the import moves nothing, and leases end and start there afterwards."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from climate.context import Climate
from climate.domain.policy import MEMBER, Caller
from climate.plugin import ResourcePlugin
from climate.service.blazar_import.importer import run_import
from climate.service.blazar_import.records import BlazarData
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.leases import leases, reservation_aggregates
from climate.service.leases.leases import Listing
from climate.settings import Settings
from tests.cloud.nova import Nova, nova
from tests.conftest import ADMIN, Clock
from tests.service.blazar_import.blazar_factory import host, lease, servers
from tests.service.blazar_import.recordings import number
from tests.service.lease_actions import run_due

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1, N2 = "n1.example.org", "n2.example.org"
WHOLE, SHARED, NEXT, NEXT_SHARED = (str(number(f"{name}-")) for name in ("whole", "shared", "next", "next-shared"))
DATA = BlazarData(
    (host("1", N1), host("2", N2)),
    leases=(
        lease("whole", "1", -1, 1, "ACTIVE"),
        lease("shared", ["2", "2"], -1, 1, "ACTIVE", wanted=servers(2)),
        lease("next", "2", 1, 3),
        lease("next-shared", "1", 1, 3, wanted=replace(servers(1, vcpus=2), memory_mb=4096, disk_gb=20)),
    ),
)


@pytest.fixture
def both(
    tmp_path: Path, engine: Engine, clock: Clock, plugins: Mapping[str, ResourcePlugin]
) -> Iterator[tuple[Nova, Climate]]:
    """A Nova as Blazar leaves it, with a server on each lease that is active, and an engine without hosts."""
    with nova(tmp_path) as (there, cloud):
        there.put("freepool", ("n2",))
        owner = {"blazar:owner": "project"}
        there.put(WHOLE, ("n1",), **owner, availability_zone=f"blazar_{WHOLE}")
        there.put(NEXT, **owner, availability_zone=f"blazar_{NEXT}")
        for reservation, hosts in ((SHARED, ("n2",)), (NEXT_SHARED, ())):
            there.put(reservation, hosts, **owner, reservation=reservation, filter_tenant_id="project")
            there.flavor(reservation, **{"aggregate_instance_extra_specs:reservation": reservation})
            there.access[reservation].add("project")
        there.run("on-whole", N1, tenant_id="project")
        there.run("on-shared", N2, tenant_id="project", flavor={"original_name": f"reservation:{SHARED}"})
        settings = Settings(minutes_before_end=0, cloud="openstack")
        yield there, Climate(engine, cloud, dict(plugins), settings, clock, lambda: 0.5)


def statuses(climate: Climate) -> dict[str, str]:
    return {one.name: str(one.status) for one in leases.listed(climate, ADMIN, Listing())}


def test_an_import_changes_nothing_in_nova(both: tuple[Nova, Climate]) -> None:
    there, climate = both
    before = deepcopy((there.aggregates, there.servers, there.flavors))
    report = run_import(climate, DATA)
    assert (report.refusals, report.hosts, report.leases) == ((), 2, 4)
    assert reconcile.correct(climate) == 0
    reservation_aggregates.reconcile(climate)
    assert (there.aggregates, there.servers, there.flavors) == before
    assert there.log == []


def test_imported_leases_end_and_start_in_nova(both: tuple[Nova, Climate], clock: Clock) -> None:
    there, climate = both
    run_import(climate, DATA)
    clock.forward(hours=1)
    for _ in range(20):
        run_due(climate)
        clock.forward(minutes=1)
    ended, active = "TERMINATED", "ACTIVE"
    assert statuses(climate) == {"whole": ended, "shared": ended, "next": active, "next-shared": active}
    assert there.servers == {}
    hosts = {each["name"]: each["hosts"] for each in there.aggregates.values()}
    assert {name: hosts.get(name) for name in ("freepool", WHOLE, SHARED, NEXT, NEXT_SHARED)} == {
        "freepool": ["n1"],
        WHOLE: None,
        SHARED: None,
        NEXT: ["n2"],
        NEXT_SHARED: ["n1"],
    }
    assert set(there.flavors) == {NEXT_SHARED}
    assert consistency_check.differences(climate) == []


def test_what_blazar_created_for_a_lease_goes_when_it_is_deleted_before_its_start(both: tuple[Nova, Climate]) -> None:
    there, climate = both
    run_import(climate, DATA)
    owner = Caller("user", "project", frozenset({MEMBER}))
    for name in ("next", "next-shared"):
        leases.delete(climate, owner, number(name))
    run_due(climate)
    assert set(statuses(climate)) == {"whole", "shared"}
    assert {each["name"] for each in there.aggregates.values()}.isdisjoint({NEXT, NEXT_SHARED})
    assert set(there.flavors) == {SHARED}
    assert there.of(WHOLE)["hosts"] == ["n1"]


def test_a_pending_lease_with_a_server_group_is_refused(both: tuple[Nova, Climate]) -> None:
    _, climate = both
    apart = lease("apart", "12", 5, 6, wanted=servers(2, affinity=False))
    report = run_import(climate, replace(DATA, leases=(*DATA.leases, apart)), dry_run=True)
    assert [one.name for one in report.refusals] == ["apart"]
