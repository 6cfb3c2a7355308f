"""Leases read from rows: they are what their journal says, whatever parts they have."""

from dataclasses import replace

from climate.context import Climate
from climate.domain.lease import Lease, fold
from climate.service.events import event_dispatch
from climate.service.leases import leases as operations
from climate.store.journal import journal
from climate.store.leases import leases
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_statement_counts import counted
from tests.service.floating_ip_factory import addresses_wanted, registered
from tests.service.lease_actions import get, hosts_wanted, make, run_due
from tests.service.storage_factory import pool, storage_wanted


def _of_facts(climate: Climate, lease: Lease) -> Lease:
    return fold(journal.of_lease(operations.history(climate, ADMIN, lease.id)))


def test_a_lease_of_hosts_storage_and_addresses_is_read_as_its_facts_say(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    registered(climate, 3)
    wanted = (hosts_wanted(2), storage_wanted(10), addresses_wanted(2), storage_wanted(20), hosts_wanted(1))
    lease = make(climate, clock, *wanted, start=1, hours=2)
    assert get(climate, lease) == lease == _of_facts(climate, lease)
    holds, first, addresses, second, more = lease.reservations
    assert [len(r.holds) for r in (holds, more)] == [2, 1]
    assert [len(addresses.addresses), first.amounts[0].amount, second.amounts[0].amount] == [2, 10, 20]
    clock.forward(hours=1)
    event_dispatch.claim_due(climate, "poller")
    claimed = get(climate, lease)
    assert [len(event.shares) for event in claimed.events if event.token] == [3], "one for each type"
    assert claimed == _of_facts(climate, lease)
    run_due(climate)
    clock.forward(hours=3)
    run_due(climate)
    assert get(climate, lease) == _of_facts(climate, lease)


def test_the_pool_of_each_reservation_is_read_with_it(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), hosts_wanted(2))
    pools = climate.cloud.lease_pools()
    known = {r.id: pools[str(r.id)].id for r in lease.reservations}
    assert len(set(known.values())) == 2
    assert {r.id: r.aggregate_id for r in get(climate, lease).reservations} == known


def test_a_list_is_one_statement_and_its_events_are_json_lists(climate: Climate, clock: Clock) -> None:
    made = [make(climate, clock, hosts_wanted(1), start=n, hours=0.5) for n in range(1, 5)]
    with counted(climate.engine) as seen, climate.engine.connect() as conn:
        assert leases.listed(conn, Listing()) == made
        row = conn.execute(leases._WHOLE).first()
    assert row is not None
    assert len(seen) == 2
    assert all(isinstance(event, list) for event in row.parts[1]), "objects take twice the time"


def test_the_soonest_ends_are_listed_first(climate: Climate, clock: Clock) -> None:
    made = [make(climate, clock, start=start, hours=1) for start in (9, 3, 6, 1)]
    wanted = Listing(made[0].project_id, ends_after=made[3].period.end, limit=2, soonest=True)
    with climate.engine.connect() as conn:
        assert leases.listed(conn, wanted) == [made[1], made[2]]
        assert leases.listed(conn, replace(wanted, project_id="other")) == []
        assert leases.listed(conn, Listing(made[0].project_id, ends_after=made[3].period.end)) == made[:3]
        assert leases.listed(conn, Listing("other", ends_after=clock.time)) == []
        assert leases.listed(conn, Listing(status="PENDING")) == made
        assert leases.listed(conn, Listing(status="none")) == []
