"""The import from Blazar beside a real Nova: leases with servers go on, end and start where Blazar's aggregates are."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from climate.cloud import ACTIVE, FREEPOOL, openstack
from climate.cloud.openstack.blazar_filter import ZONE, ZONE_PREFIX
from climate.cloud.openstack.pools.aggregates import OWNER as OWNED_BY
from climate.context import Climate
from climate.plugin import ResourcePlugin
from climate.service.blazar_import.importer import run_import
from climate.service.blazar_import.records import BlazarData, BlazarLease
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.leases import leases, reservation_aggregates
from climate.service.leases.leases import Listing
from climate.settings import Settings
from tests.conftest import ADMIN, Clock
from tests.real_openstack import accounts
from tests.real_openstack.conftest import MARKS, SECONDS, People
from tests.real_openstack.leases import OWNER, STRANGER, pools
from tests.service.blazar_import.blazar_factory import host, lease
from tests.service.blazar_import.recordings import number
from tests.service.lease_actions import run_due
from tests.system.stack import await_so

pytestmark = MARKS

NOW, NEXT = str(number("now-")), str(number("next-"))


@pytest.fixture
def empty(
    people: People, with_blazar_filter: None, engine: Engine, clock: Clock, plugins: Mapping[str, ResourcePlugin]
) -> Climate:
    """Return an engine without hosts, over that Nova."""
    cloud = openstack.of("admin", str(accounts.clouds(people.layout)), blazar_filter=True)
    settings = Settings(minutes_before_end=0, cloud="openstack")
    return Climate(engine, cloud, dict(plugins), settings, clock, lambda: 0.5)


def of_blazar(people: People, name: str, *names: str) -> None:
    """Create an aggregate as Blazar does: the reservation pool, or that of a reservation."""
    compute, project = people.admin.compute, people.users[OWNER].current_project_id
    made = compute.create_aggregate(name=name)
    if name != FREEPOOL:
        compute.set_aggregate_metadata(made, **{ZONE: f"{ZONE_PREFIX}{name}", OWNED_BY: project})
    for each in names:
        compute.add_host_to_aggregate(made, each)


def statuses(climate: Climate) -> dict[str, str]:
    return {one.name: str(one.status) for one in leases.listed(climate, ADMIN, Listing())}


def owned(people: People, lease: BlazarLease) -> BlazarLease:
    return replace(lease, project_id=people.users[OWNER].current_project_id)


def test_leases_with_servers_go_on_in_place_of_blazar(people: People, empty: Climate, clock: Clock) -> None:
    of_blazar(people, FREEPOOL, "h2")
    of_blazar(people, NOW, "h1")
    of_blazar(people, NEXT)
    mine, theirs = people.boot(OWNER, NOW), people.boot(STRANGER)
    assert [each.hypervisor_hostname for each in (mine, theirs)] == ["h1", "h3"]
    before = pools(people)
    data = BlazarData(
        (host("1", "h1"), host("2", "h2")),
        leases=(
            owned(people, lease("now", "1", -1, 1, "ACTIVE")),
            owned(people, lease("next", "2", 1, 3)),
        ),
    )

    report = run_import(empty, data)
    assert (report.refusals, report.hosts, report.leases, report.allocations) == ((), 2, 2, 2)
    assert reconcile.correct(empty) == 0
    reservation_aggregates.reconcile(empty)
    assert pools(people) == before
    assert people.look(mine.id).status == ACTIVE
    assert people.boot(OWNER, NOW).hypervisor_hostname == "h1"

    clock.forward(hours=1)

    def is_over() -> bool:
        run_due(empty)
        clock.forward(seconds=5)
        return statuses(empty) == {"now": "TERMINATED", "next": "ACTIVE"}

    await_so(is_over, SECONDS, "the end of one lease and the start of the next")
    after = pools(people)
    assert (after[FREEPOOL], after[NEXT], after.get(NOW)) == ({"h1"}, {"h2"}, None)
    assert people.is_gone(mine.id)
    assert people.look(theirs.id).status == ACTIVE
    assert people.boot(OWNER, NEXT).hypervisor_hostname == "h2"
    assert people.boot(STRANGER, NEXT) is None
    assert consistency_check.differences(empty) == []
