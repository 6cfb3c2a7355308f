"""Hosts on the books, while leases count on them."""

from datetime import timedelta

import pytest

from climate.cloud import FREEPOOL, Fenced, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.hosts.pools import Pool
from climate.domain.status import LeaseStatus
from climate.service.host_operations import maintenance
from climate.service.hosts import inventory, reconcile
from climate.service.journal import consistency_check
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims
from tests.conftest import ADMIN, Clock, cloud_host
from tests.service.hosts.test_reconcile import put
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due


@pytest.mark.parametrize("where", ["hypervisor_properties", "resource_properties"])
def test_a_capability_that_a_lease_relies_on_stays(climate: Climate, clock: Clock, where: str) -> None:
    lease = make(climate, clock, hosts_wanted(1, **{where: '["and", [">", "$vcpus", "4"], [">", "$gpu_count", "1"]]'}))
    host = str(min(held(lease)))
    for value in ("1", None):
        with pytest.raises(Conflict, match="gpu_count"):
            inventory.update(climate, ADMIN, host, {"gpu_count": value})
    assert inventory.update(climate, ADMIN, host, {"gpu_count": "2", "rack": "7"}).extra == {
        "gpu_count": "2",
        "rack": "7",
    }


def test_a_host_that_the_cloud_refuses_stays_on_the_books_of_whom_it_was_promised_to(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h9", vcpus=64)])
    leases = []

    def book(verb: str) -> None:
        if verb == "enrol" and not leases:
            leases.append(make(climate, clock, hosts_wanted(1, hypervisor_properties='["==", "$vcpus", "64"]')))

    cloud.watch, cloud.failures = book, {"enrol": Refused("servers were quicker")}
    with pytest.raises(Conflict, match="quicker"):
        inventory.register(climate, ADMIN, "h9", {})
    assert [host.id for host in inventory.listed(climate, ADMIN) if host.name == "h9"] == list(held(leases[0]))
    cloud.failures = {}
    reconcile.correct(climate)
    assert "h9" in cloud.pools()[FREEPOOL]


def test_a_host_that_the_cloud_refuses_is_not_on_the_books(climate: Climate, cloud: FakeCloud) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h9")])
    cloud.failures = {"enrol": Refused("servers were quicker")}
    with pytest.raises(Conflict, match="quicker"):
        inventory.register(climate, ADMIN, "h9", {})
    assert "h9" not in {host.name for host in inventory.listed(climate, ADMIN)}


def test_a_lease_waits_for_a_host_that_is_unknown_to_the_cloud(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """Whoever registered it died between the books and the cloud."""
    lease = make(climate, clock, hosts_wanted(8), start=0)
    cloud.withdraw("h1", 1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.STARTING
    reconcile.correct(climate)
    clock.forward(seconds=10)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(
    "pool", [Pool.MULTI_TENANT, Pool.RECYCLING, Pool.DRAINING, Pool.CLEANING, Pool.MAINTENANCE, Pool.FAILED]
)
def test_a_removed_host_is_in_no_pool_any_more(climate: Climate, cloud: FakeCloud, pool: Pool) -> None:
    put(climate, 3, pool)
    reconcile.correct(climate)
    inventory.remove(climate, ADMIN, "3", dry_run=True)
    inventory.remove(climate, ADMIN, "3")
    assert not [name for name, members in cloud.pools().items() if "h3" in members]
    cloud.set_hosts(cloud.hosts.values())
    assert inventory.register(climate, ADMIN, "h3", {}).id == 9
    assert (reconcile.correct(climate), "h3" in cloud.pools()[FREEPOOL], consistency_check.differences(climate)) == (
        0,
        True,
        [],
    )


def test_the_maintenance_of_a_removed_host_is_off(climate: Climate, clock: Clock) -> None:
    start = clock.time + timedelta(hours=1)
    planned = maintenance.plan(climate, ADMIN, maintenance.WindowRequest("3", start, None, "disks"))
    inventory.remove(climate, ADMIN, "3")
    assert maintenance.get(climate, ADMIN, planned.window.id).state == "cancelled"
    clock.forward(hours=2)
    maintenance.run_round(climate)


def test_a_host_is_registered_under_a_token_that_later_claims_are_above(climate: Climate, cloud: FakeCloud) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h9")])
    made = inventory.register(climate, ADMIN, "h9", {})
    with climate.engine.begin() as conn:
        place, later = pool_membership.get(conn, made.id), event_claims.tokens(conn, 1)[0]
    assert 0 < place.token < later
    assert cloud.effects["enrol", "h9", place.token] == 1
    cloud.place("h9", None, later)
    with pytest.raises(Fenced):
        cloud.enrol("h9", place.token)
    assert consistency_check.differences(climate) == []


def test_a_host_that_was_removed_can_be_registered_again(climate: Climate, cloud: FakeCloud) -> None:
    inventory.remove(climate, ADMIN, "1")
    assert "h1" not in cloud.pools()[FREEPOOL]
    inventory.register(climate, ADMIN, "h1", {})
    assert "h1" in cloud.pools()[FREEPOOL]
