"""Hosts of a lease that are promised to sub-leases, and what comes back."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from climate.domain import lease_health
from climate.domain.errors import Conflict
from climate.domain.events import event_transitions
from climate.domain.facts import Fact, Hold, LeaseRescheduled, PlannedReservation, ReservationChanged
from climate.domain.lease import Lease, fold
from climate.domain.period import Period
from climate.domain.sharing import sublease, sublease_return
from climate.domain.sharing.sublease_facts import (
    HostsSublet,
    ParentLease,
    SubleaseProlonged,
    SubleaseReturned,
    SubletHostsReturned,
    SubletHostsTaken,
    SubletWarned,
)
from climate.domain.status import HoldState
from tests.domain.lease_factory import HOUR, NOON, PERIOD, after, created, done

R, S = UUID(int=7), UUID(int=99)
START = PERIOD.start + HOUR
FOUR = tuple(Hold(host, PERIOD) for host in (1, 2, 3, 4))
GIVEN = HostsSublet(R, NOON, S, (2, 3), START, START, START)
TAKEN = SubletHostsTaken(R, START, S)


def parent(*happened: Fact) -> tuple[Lease, list[Fact]]:
    """A lease of four hosts with further facts, and its story."""
    first = created()
    planned = PlannedReservation(R, "physical:host", {"min": 4, "max": 4}, holds=FOUR)
    story = [replace(first, reservations=(planned,)), *happened]
    return fold(story), story


def sub(*hosts: int) -> Lease:
    """The sub-lease, which has these hosts."""
    planned = PlannedReservation(
        UUID(int=8), "physical:host", {}, holds=tuple(Hold(host, Period(START, PERIOD.end)) for host in hosts)
    )
    of = ParentLease(UUID(int=1), R, "project", PERIOD.end)
    first = replace(created(Period(START, START + HOUR / 2)), lease_id=S, reservations=(planned,), parent=of)
    return fold([first])


def hosts(lease: Lease) -> tuple[int, ...]:
    return lease.reservations[0].hosts


def back(lease: Lease, story: list[Fact], of: Lease) -> Lease:
    """The parent after the return."""
    return after(lease, *sublease_return.returned(lease, of, story, START + HOUR / 2, uuid4))


def test_promised_hosts_are_held_until_they_are_taken() -> None:
    lease, _ = parent(GIVEN)
    ends = {hold.host: hold.during.end for hold in lease.reservations[0].holds}
    assert ends == {1: PERIOD.end, 2: START, 3: START, 4: PERIOD.end}
    assert [one.taken for one in lease.reservations[0].sublets] == [False, False]
    kept, lent = sublease.split_by_pending(lease.reservations[0].holds, lease.reservations[0].sublets)
    assert ([h.host for h in kept], [h.host for h in lent]) == ([1, 4], [2, 3])
    warned = after(lease, SubletWarned(R, NOON, S))
    assert all(one.warned for one in warned.reservations[0].sublets)
    taken = after(warned, TAKEN)
    assert hosts(taken) == (1, 4)
    assert sublease.count_taken(taken.reservations[0].sublets) == 2
    assert sublease.counts(taken.reservations) == {S: 2}


@pytest.mark.parametrize(("facts", "number"), [((), 4), ((GIVEN,), 4), ((GIVEN, TAKEN), 2)])
def test_hosts_in_a_sub_lease_are_not_missing(facts: tuple[Fact, ...], number: int) -> None:
    lease, story = parent(*facts)
    assert lease_health.promised(lease.reservations[0], story) == number
    over = SubletHostsReturned(R, START, S)
    assert lease_health.promised(lease.reservations[0], [*story, over]) == 4


def test_what_was_taken_comes_back_and_is_handed_over() -> None:
    lease, story = parent(GIVEN, TAKEN)
    running = done(lease, "start_lease", START)
    facts = sublease_return.returned(running, sub(2, 3), story, START + HOUR / 2, uuid4)
    assert [type(fact) for fact in facts] == [SubletHostsReturned, LeaseRescheduled, ReservationChanged]
    after_it = after(running, *facts)
    assert hosts(after_it) == (1, 2, 3, 4)
    assert (after_it.reservations[0].sublets, after_it.degraded) == ((), False)


def test_what_was_not_taken_is_kept_to_the_end() -> None:
    lease, story = parent(GIVEN)
    assert back(lease, story, sub(2, 3)).reservations[0].holds == FOUR


def test_other_hosts_come_back_up_to_the_promise() -> None:
    lease, story = parent(GIVEN, TAKEN)
    running = done(lease, "start_lease", START)
    assert hosts(back(running, story, sub(3, 5))) == (1, 3, 4, 5)
    assert back(running, story, sub(3, 5)).degraded
    replaced = ReservationChanged(START, R, {"min": 4, "max": 4}, (FOUR[0], FOUR[3], Hold(6, PERIOD)), missing=0)
    assert hosts(back(after(running, replaced), [*story, replaced], sub(2, 3))) == (1, 2, 4, 6)


def test_what_does_not_come_back_is_missing() -> None:
    lease, story = parent(GIVEN, TAKEN)
    after_it = back(lease, story, sub(2))
    assert (hosts(after_it), after_it.reservations[0].missing) == ((1, 2, 4), 1)
    lacking = ReservationChanged(START, R, {"min": 4, "max": 4}, (FOUR[0],), missing=1)
    after_it = back(after(lease, lacking), [*story, lacking], sub(2, 3))
    assert (hosts(after_it), after_it.reservations[0].missing) == ((1, 2, 3), 1)


def test_a_host_that_was_replaced_before_it_was_taken_is_given_up() -> None:
    lease, story = parent(GIVEN)
    after_it = back(lease, story, sub(3, 5))
    assert (hosts(after_it), after_it.reservations[0].missing) == ((1, 3, 4, 5), 0)


def test_a_parent_that_is_over_gets_nothing() -> None:
    lease, story = parent(GIVEN, TAKEN)
    facts = sublease_return.returned(lease, sub(2, 3), story, PERIOD.end, uuid4)
    assert [type(fact) for fact in facts] == [SubletHostsReturned]
    gone = after(lease, *facts).reservations[0]
    assert (hosts(after(lease, *facts)), sublease.count_taken(gone.sublets)) == ((1, 4), 2), (
        "its project had four hosts"
    )
    untouched, story = parent(GIVEN)
    facts = sublease_return.returned(untouched, sub(2, 3), story, PERIOD.end, uuid4)
    assert after(untouched, *facts).reservations[0].sublets == ()


def test_a_sub_lease_holds_its_hosts_until_they_are_returned() -> None:
    lease = done(done(sub(2, 3), "start_lease", START), "end_lease", START + HOUR)
    assert (lease.owes_hosts, lease.hold_state) == (True, HoldState.ACTIVE)
    assert lease.hold_state_of(lease.reservations[0]) is HoldState.ACTIVE
    returned = after(lease, SubleaseReturned(START + HOUR))
    assert (returned.owes_hosts, returned.hold_state) == (False, HoldState.RELEASED)
    planned = sub(2, 3)
    deleted = after(planned, *event_transitions.delete(planned, NOON))
    assert (deleted.gone, deleted.hold_state) == (True, HoldState.ACTIVE)


def test_a_sub_lease_is_held_for_longer_with_its_parent() -> None:
    longer = after(sub(2, 3), SubleaseProlonged(NOON, PERIOD.end + HOUR))
    assert {hold.during for hold in longer.reservations[0].holds} == {Period(START, PERIOD.end + HOUR)}
    assert longer.parent is not None
    assert longer.parent.until == PERIOD.end + HOUR
    with pytest.raises(ValueError, match="no sub-lease"):
        after(parent()[0], SubleaseReturned(NOON))


def test_a_change_is_refused_with_the_ids() -> None:
    lease, _ = parent(GIVEN)
    with pytest.raises(Conflict, match=str(S)):
        sublease.refuse_change(sublease.ids(lease.reservations), "cannot be deleted")
    sublease.refuse_change(sublease.ids(parent()[0].reservations), "cannot be deleted")
