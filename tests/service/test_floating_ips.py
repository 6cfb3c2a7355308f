"""Leases of floating addresses: what they promise, hand over and take back."""

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import Engine, text

from climate import bootstrap
from climate.cloud import CloudError
from climate.cloud.fake import FakeCloud
from climate.cloud.fake_state import FakeAddress
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, LimitExceeded, NotEnoughAddresses, NotFound
from climate.domain.facts import ReservationChanged
from climate.domain.lease import Lease, fold
from climate.domain.limits import Limit
from climate.domain.status import LeaseStatus
from climate.service import floating_ips
from climate.service.admission import limits
from climate.service.events import event_dispatch
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.store.leases.event_claims import CHANNEL
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.floating_ip_factory import NETWORK, addresses_wanted, allocated, promised_twice, registered, spelled
from tests.service.lease_actions import (
    END,
    START,
    claim,
    event,
    get,
    hosts_wanted,
    kinds,
    make,
    rows,
    run,
    run_due,
    settle,
)


def grow(climate: Climate, lease: Lease, **spec: object) -> Lease:
    wanted = Changes(reservations=[{"id": str(lease.reservations[0].id), **spec}])
    return update.update(climate, MEMBER, lease.id, wanted)


def test_from_the_promise_to_the_end(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 3)
    lease = make(climate, clock, addresses_wanted(2), start=1, hours=2)
    assert allocated(lease) == [spelled(10), spelled(11)] == allocated(get(climate, lease))
    assert cloud.addresses == {}
    clock.forward(hours=1)
    run_due(climate)
    pool = str(lease.reservations[0].id)
    assert {name: (one.project_id, one.pool) for name, one in cloud.addresses.items()} == {
        spelled(10): ("project", pool),
        spelled(11): ("project", pool),
    }
    clock.forward(hours=2)
    run_due(climate)
    assert cloud.addresses == {}
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


def test_a_lease_of_hosts_and_addresses(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 2)
    lease = make(climate, clock, hosts_wanted(1), addresses_wanted(1), addresses_wanted(1), start=0)
    assert allocated(lease) == [spelled(10), spelled(11)]
    run_due(climate)
    assert set(cloud.addresses) == {spelled(10), spelled(11)}
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    assert cloud.addresses == {}
    assert consistency_check.differences(climate) == []


def test_required_addresses_are_among_them(climate: Climate, clock: Clock) -> None:
    registered(climate, 4)
    assert allocated(make(climate, clock, addresses_wanted(2, spelled(13)))) == [spelled(10), spelled(13)]
    with pytest.raises(NotEnoughAddresses, match=r"unavailable are 203\.0\.113\.13, 203\.0\.113\.77"):
        make(climate, clock, addresses_wanted(2, spelled(13), spelled(77)))


def test_a_refusal_says_what_there_is_and_when_it_would_fit(climate: Climate, clock: Clock) -> None:
    registered(climate, 2)
    first = make(climate, clock, addresses_wanted(1), start=1, hours=2)
    with pytest.raises(NotEnoughAddresses) as refused:
        make(climate, clock, addresses_wanted(2), start=1, hours=1)
    said = "2 wanted, 2 of network net-out can be reserved, 1 of them free"
    assert str(refused.value) == (
        f"Not enough floating IPs available: {said}; it would fit from {first.period.end:%Y-%m-%d %H:%M:%S} UTC"
    )
    with pytest.raises(NotEnoughAddresses, match=r"3 wanted, 2 of network net-out can be reserved, 1 of them free$"):
        make(climate, clock, addresses_wanted(3))
    with pytest.raises(NotEnoughAddresses, match="0 of network elsewhere can be reserved"):
        make(climate, clock, addresses_wanted(1, network_id="elsewhere"))
    assert allocated(make(climate, clock, addresses_wanted(2), start=3, hours=1)) == [spelled(10), spelled(11)]


def test_a_terminated_lease_keeps_no_address_from_being_removed(climate: Climate, clock: Clock) -> None:
    known = registered(climate, 1)[0]
    lease = make(climate, clock, addresses_wanted(1), start=0, hours=1)
    make(climate, clock, addresses_wanted(1), start=2, hours=1)
    with pytest.raises(Conflict, match=r"floating IP 203\.0\.113\.10. It is reserved: 2 leases count on it"):
        floating_ips.remove(climate, ADMIN, str(known.id))
    settle(climate, clock, hours=4)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    floating_ips.remove(climate, ADMIN, str(known.id))
    assert floating_ips.listed(climate, ADMIN) == []
    assert allocated(get(climate, lease)) == [spelled(10)], "its history stays"
    again = registered(climate, 1)[0]
    assert again.number != known.number
    assert allocated(make(climate, clock, addresses_wanted(1))) == [spelled(10)]
    assert consistency_check.differences(climate) == []


def test_a_lease_that_is_not_started_may_want_fewer_or_more(climate: Climate, clock: Clock) -> None:
    registered(climate, 3)
    lease = make(climate, clock, addresses_wanted(2, spelled(12)))
    assert allocated(grow(climate, lease, amount=3)) == [spelled(10), spelled(11), spelled(12)]
    assert allocated(grow(climate, lease, amount=1)) == [spelled(12)]
    with pytest.raises(NotEnoughAddresses):
        grow(climate, lease, amount=4)
    assert consistency_check.differences(climate) == []


def test_what_cannot_be_changed(climate: Climate, clock: Clock) -> None:
    registered(climate, 3)
    lease = make(climate, clock, addresses_wanted(1, spelled(11)))
    with pytest.raises(Conflict, match="network_id cannot be updated"):
        grow(climate, lease, network_id="another")
    with pytest.raises(InvalidInput, match=r"required_floatingips can only be updated to \[\]"):
        grow(climate, lease, required_floatingips=[spelled(12)])
    both = make(climate, clock, addresses_wanted(2, spelled(10), spelled(12)))
    with pytest.raises(InvalidInput, match="longer than amount: 2 are required, and amount is 1"):
        grow(climate, both, amount=1)
    assert allocated(grow(climate, both, amount=1, required_floatingips=[])) == [spelled(10)]
    eased = grow(climate, lease, required_floatingips=[])
    assert eased.reservations[0].spec["required_floatingips"] == []
    assert allocated(eased) == [spelled(11)], "what it has, it keeps"


def test_an_active_lease_may_only_grow(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 3)
    lease = make(climate, clock, addresses_wanted(2), start=0)
    run_due(climate)
    with pytest.raises(InvalidInput, match="amount cannot become less while the lease is active: it is 2, and 1"):
        grow(climate, lease, amount=1)
    grow(climate, lease, amount=3)
    run_due(climate)
    assert set(cloud.addresses) == {spelled(10), spelled(11), spelled(12)}
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


def test_an_active_lease_is_prolonged_with_its_own_addresses_or_not_at_all(climate: Climate, clock: Clock) -> None:
    registered(climate, 2)
    lease = make(climate, clock, addresses_wanted(1), start=0, hours=2)
    run_due(climate)
    later = make(climate, clock, addresses_wanted(1, spelled(10)), start=3, hours=1)
    with pytest.raises(NotEnoughAddresses, match="those of this lease may be promised to another"):
        update.update(climate, MEMBER, lease.id, Changes(end=later.period.end))
    longer = update.update(climate, MEMBER, lease.id, Changes(end=later.period.start))
    assert longer.reservations[0].addresses[0].during.end == later.period.start
    assert promised_twice(climate) == []


def test_new_dates_are_checked_anew_and_may_bring_other_addresses(climate: Climate, clock: Clock) -> None:
    registered(climate, 2)
    make(climate, clock, addresses_wanted(1), start=5, hours=2)
    lease = make(climate, clock, addresses_wanted(1), start=1, hours=2)
    assert allocated(lease) == [spelled(10)]
    moved = Changes(start=clock.time + timedelta(hours=5), end=clock.time + timedelta(hours=6))
    assert allocated(update.update(climate, MEMBER, lease.id, moved)) == [spelled(11)]
    with pytest.raises(NotEnoughAddresses):
        make(climate, clock, addresses_wanted(1), start=5, hours=1)
    assert consistency_check.differences(climate) == []


def test_a_grace_period_keeps_the_addresses(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 1)
    lease = make(climate, clock, addresses_wanted(1, grace_period=600), start=0, hours=1)
    with pytest.raises(NotEnoughAddresses):
        make(climate, clock, addresses_wanted(1), start=1, hours=1)
    settle(climate, clock, hours=1)
    assert get(climate, lease).in_grace(clock.time)
    assert set(cloud.addresses) == {spelled(10)}
    clock.forward(minutes=10)
    run_due(climate)
    assert cloud.addresses == {}


def test_a_grace_beyond_what_owners_may_ask_for(climate: Climate, clock: Clock) -> None:
    registered(climate, 1)
    longest = climate.settings.max_grace_period
    with pytest.raises(InvalidInput, match=f"grace_period may be {longest} seconds at most here"):
        make(climate, clock, addresses_wanted(1, grace_period=longest + 1))


def test_the_next_lease_waits_for_an_address_that_was_not_given_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    registered(climate, 1)
    first = make(climate, clock, addresses_wanted(1), start=0, hours=1)
    second = make(climate, clock, addresses_wanted(1), start=1, hours=2)
    run_due(climate)
    cloud.failures["take_back_addresses"] = CloudError("away")
    clock.forward(hours=1)
    run_due(climate)
    assert event(climate, first, END).status == event(climate, second, START).status == "UNDONE"
    del cloud.failures["take_back_addresses"]
    settle(climate, clock, hours=0.5)
    assert get(climate, first).status is LeaseStatus.TERMINATED
    assert get(climate, second).status is LeaseStatus.ACTIVE
    assert cloud.addresses[spelled(10)].pool == str(second.reservations[0].id)


def test_who_waits_for_an_address_is_informed_when_it_comes_back(
    climate: Climate, clock: Clock, database_url: str
) -> None:
    registered(climate, 1)
    first = make(climate, clock, addresses_wanted(1), start=0, hours=1)
    second = make(climate, clock, addresses_wanted(1), start=1, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    ends = claim(climate)
    assert [message.event_id for message in ends] == [first.event(END).id]
    with psycopg.connect(bootstrap.plain_url(database_url), autocommit=True) as conn:
        conn.execute(f"LISTEN {CHANNEL}")
        run(climate, ends[0])
        assert len(list(conn.notifies(timeout=30, stop_after=1))) == 1
    assert [message.event_id for message in claim(climate)] == [second.event(START).id]


def test_a_start_that_fails_half_way_leaves_nothing(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 2)
    lease = make(climate, clock, addresses_wanted(2), start=0, hours=1)
    own = FakeAddress("another", NETWORK, None)
    cloud.addresses[spelled(11)] = own
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ERROR
    assert set(cloud.addresses) == {spelled(10), spelled(11)}
    settle(climate, clock, hours=2)
    assert cloud.addresses == {spelled(11): own}


def test_an_answer_that_is_lost_changes_nothing(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 2)
    lease = make(climate, clock, addresses_wanted(2), start=0, hours=1)
    cloud.unheard |= {"lend_address": 1, "take_back_addresses": 1}
    settle(climate, clock, hours=0.5)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert set(cloud.addresses) == {spelled(10), spelled(11)}
    settle(climate, clock, hours=1)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert cloud.addresses == {}
    assert cloud.doubled() == []


def test_the_journal_tells_it_all(climate: Climate, clock: Clock, engine: Engine) -> None:
    registered(climate, 3)
    make(climate, clock, addresses_wanted(1), start=0, hours=0.5)
    kept = make(climate, clock, addresses_wanted(2), start=0, hours=3)
    run_due(climate)
    grow(climate, kept, amount=2, grace_period=60)
    clock.forward(hours=1)
    run_due(climate)
    assert "ReservationChanged" in kinds(climate, kept)
    before = {**rows(engine), "floating": addresses_held(engine)}
    for damage in (
        "UPDATE floating_allocations SET state = 'held' WHERE state = 'released'",
        "DELETE FROM floating_allocations",
        "UPDATE floating_allocations SET number = 3 WHERE state = 'released'",
        "UPDATE floating_allocations SET during = tstzrange(lower(during), upper(during) + interval '1 day')",
    ):
        with engine.begin() as conn:
            assert conn.execute(text(damage)).rowcount
        found = consistency_check.differences(climate)
        assert {one.table for one in found} == {"floating_allocations"}
        assert rebuild(climate).left == ()
        assert consistency_check.differences(climate) == []
        assert {**rows(engine), "floating": addresses_held(engine)} == before


def addresses_held(engine: Engine) -> list[str]:
    with engine.connect() as conn:
        return sorted(str(row) for row in conn.execute(text("SELECT t::text FROM floating_allocations t")))


def test_how_many_addresses_there_are_costs_no_statements(climate: Climate, clock: Clock, engine: Engine) -> None:
    registered(climate, 40)
    one = cost(engine, lambda: make(climate, clock, addresses_wanted(1), start=1, hours=1))
    assert cost(engine, lambda: make(climate, clock, addresses_wanted(30), start=2, hours=1)) == one <= 8
    for place in range(5):
        make(climate, clock, addresses_wanted(3), start=3 + place, hours=1)
    assert cost(engine, lambda: make(climate, clock, addresses_wanted(20), start=9, hours=1)) == one
    assert cost(engine, lambda: floating_ips.listed(climate, MEMBER)) == 1
    assert cost(engine, lambda: floating_ips.allocations(climate, ADMIN)) == 2


def test_registering(climate: Climate) -> None:
    known = registered(climate, 1)[0]
    assert (known.network_id, known.subnet_id, known.address) == (NETWORK, "subnet-out", spelled(10))
    by_name = floating_ips.register(climate, ADMIN, "public", spelled(11))
    assert by_name.network_id == NETWORK
    with pytest.raises(Conflict, match=r"203\.0\.113\.10 of network net-out is already registered"):
        floating_ips.register(climate, ADMIN, NETWORK, spelled(10))
    with pytest.raises(NotFound, match="no external network 'nowhere'"):
        floating_ips.register(climate, ADMIN, "nowhere", spelled(10))
    for address, says in (
        ("198.51.100.7", "is in no subnet of the network; its subnets are: 203.0.113.0/24"),
        (spelled(1), "is the gateway of 203.0.113.0/24"),
        (spelled(0), "is the first or last"),
        (spelled(255), "is the first or last"),
        (spelled(100), r"is in 203\.0\.113\.100 - 203\.0\.113\.199, which the cloud allocates itself"),
        (spelled(199), "which the cloud allocates itself"),
    ):
        with pytest.raises(InvalidInput, match=says):
            floating_ips.register(climate, ADMIN, NETWORK, address)
    assert len(floating_ips.listed(climate, MEMBER)) == 2


def test_who_is_refused_leaves_nothing(climate: Climate, clock: Clock, engine: Engine) -> None:
    registered(climate, 1)
    before = {**rows(engine), "floating": addresses_held(engine)}
    with pytest.raises(NotEnoughAddresses):
        make(climate, clock, hosts_wanted(1), addresses_wanted(2))
    assert {**rows(engine), "floating": addresses_held(engine)} == before


def test_a_late_worker_lends_nothing_any_more(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 1)
    lease = make(climate, clock, addresses_wanted(1), start=0, hours=1)
    stalled: list[str] = []

    def stall(verb: str) -> None:
        """Meanwhile the worker is thought dead, and the lease is ended by another one."""
        if verb == "lend_address" and not stalled:
            stalled.append(verb)
            clock.forward(seconds=climate.settings.claim_seconds + 1)
            assert event_dispatch.rescue(climate, "poller") == 1
            leases.delete(climate, MEMBER, lease.id)
            settle(climate, clock, hours=0.1)

    cloud.watch = stall
    run_due(climate)
    assert stalled == ["lend_address"]
    assert cloud.addresses == {}
    assert consistency_check.differences(climate) == []


def test_what_is_given_up_is_free_at_once(climate: Climate, clock: Clock) -> None:
    registered(climate, 1)
    for start in (1, 0, 0):
        lease = make(climate, clock, addresses_wanted(1), start=start, hours=2)
        run_due(climate)
        leases.delete(climate, MEMBER, lease.id)
        run_due(climate)
    assert allocated(make(climate, clock, addresses_wanted(1), start=0, hours=2)) == [spelled(10)]
    assert consistency_check.differences(climate) == []


def test_what_is_not_registered_any_more_is_not_chosen(climate: Climate, clock: Clock) -> None:
    first, _ = registered(climate, 2)
    floating_ips.remove(climate, ADMIN, str(first.id))
    assert allocated(make(climate, clock, addresses_wanted(1))) == [spelled(11)]
    with pytest.raises(NotEnoughAddresses, match="1 of network net-out can be reserved, 0 of them free"):
        make(climate, clock, addresses_wanted(1))


def test_reservations_that_move_together_take_different_addresses(climate: Climate, clock: Clock) -> None:
    registered(climate, 4)
    make(climate, clock, addresses_wanted(2), start=5, hours=2)
    lease = make(climate, clock, addresses_wanted(1), addresses_wanted(1), start=1, hours=2)
    assert allocated(lease) == [spelled(10), spelled(11)]
    moved = Changes(start=clock.time + timedelta(hours=5), end=clock.time + timedelta(hours=6))
    assert allocated(update.update(climate, MEMBER, lease.id, moved)) == [spelled(12), spelled(13)]
    assert consistency_check.differences(climate) == []


def test_facts_that_do_not_speak_of_addresses_leave_them(climate: Climate, clock: Clock) -> None:
    registered(climate, 1)
    lease = make(climate, clock, addresses_wanted(1))
    one = lease.reservations[0]
    assert fold([ReservationChanged(clock.time, one.id, one.spec, one.holds, changed=True)], lease).degraded
    assert allocated(fold([ReservationChanged(clock.time, one.id, one.spec, one.holds)], lease)) == [spelled(10)]


def test_an_address_whose_marks_were_taken_away_is_taken_back(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    registered(climate, 1)
    make(climate, clock, addresses_wanted(1), start=0, hours=1)
    run_due(climate)
    cloud.addresses[spelled(10)] = FakeAddress("project", NETWORK, None)
    settle(climate, clock, hours=1)
    assert cloud.addresses == {}


def test_a_limit_of_the_project(climate: Climate, clock: Clock) -> None:
    registered(climate, 6)
    limits.put(climate, ADMIN, "project", {Limit.FLOATING_IPS_AT_ONCE: 3})
    lease = make(climate, clock, addresses_wanted(2), start=1, hours=2)
    with pytest.raises(LimitExceeded, match=r"floating_ips_at_once .* is 3 .*, 2 are in use: 2 asked for"):
        make(climate, clock, addresses_wanted(2), start=2, hours=2)
    make(climate, clock, addresses_wanted(1), hosts_wanted(1), start=2, hours=2)
    with pytest.raises(LimitExceeded):
        grow(climate, lease, amount=3)
    make(climate, clock, addresses_wanted(2), start=3, hours=1)
    used = {one.limit: one.used for one in limits.of(climate, MEMBER)}
    assert used[Limit.FLOATING_IPS_AT_ONCE] == 3
    assert used[Limit.HOSTS_AT_ONCE] == 1
