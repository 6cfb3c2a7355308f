"""Host hours of a lease against a model that looks at each minute."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from climate.domain import facts
from climate.domain.events import event_transitions
from climate.domain.facts import Fact, Hold
from climate.domain.host_hours import stretches
from climate.domain.lease import Lease, evolve, fold
from climate.domain.period import Period
from climate.domain.status import EventKind, HoldState
from tests.domain.lease_factory import PERIOD, created

MINUTE = timedelta(minutes=1)
START, END = EventKind.START, EventKind.END


def _done(lease: Lease, kind: EventKind, minute: int) -> tuple[Fact, ...]:
    at = lease.created_at + minute * MINUTE
    event = lease.event(kind)
    return facts.EventClaimed(event.id, at, minute + 1), facts.EventFinished(event.id, at, "OK")


def _other_hosts(lease: Lease, minute: int, hosts: Sequence[int]) -> Fact:
    one = lease.reservations[0]
    holds = tuple(Hold(host, lease.period) for host in hosts)
    return facts.ReservationChanged(lease.created_at + minute * MINUTE, one.id, one.spec, holds)


def _length(happened: Sequence[Fact]) -> Counter[tuple[UUID, int]]:
    total: Counter[tuple[UUID, int]] = Counter()
    for one in stretches(happened):
        total[one.reservation_id, one.host] += round((one.during.end - one.during.start) / MINUTE)
    return total


def _by_minute(happened: Sequence[Fact], minutes: int) -> Counter[tuple[UUID, int]]:
    """Count each minute in which the lease, as it was then, had a host."""
    total: Counter[tuple[UUID, int]] = Counter()
    begin = happened[0].at
    for minute in range(minutes):
        at = begin + minute * MINUTE
        lease = fold(fact for fact in happened if fact.at <= at)
        due = lease.event(END).due_at
        if lease.held or not lease.period.start <= at < due:
            continue
        for reservation in lease.reservations:
            if lease.hold_state_of(reservation) is not HoldState.RELEASED:
                total.update((reservation.id, hold.host) for hold in reservation.holds)
    return +total


@st.composite
def lives(draw: st.DrawFn) -> list[Fact]:
    """Facts of a lease that starts in time or not, gets other hosts, is moved, prolonged, deleted, or ends."""
    length = draw(st.integers(5, 40))
    start = draw(st.integers(0, 10))
    begin = PERIOD.start
    period = Period(begin + start * MINUTE, begin + (start + length) * MINUTE)
    first = replace(created(period), at=begin)
    happened: list[Fact] = [first]
    lease = evolve(None, first)
    minute = 0

    def add(*more: Fact) -> None:
        nonlocal lease
        for fact in more:
            happened.append(fact)
            lease = evolve(lease, fact)

    for _ in range(draw(st.integers(0, 6))):
        minute += draw(st.integers(1, 6))
        if begin + minute * MINUTE >= lease.event(END).due_at:
            break
        step = draw(st.sampled_from(["hosts", "start", "longer", "delete"]))
        if step == "hosts":
            hosts = draw(st.sets(st.integers(1, 4), min_size=1))
            add(_other_hosts(lease, minute, sorted(hosts)))
        elif step == "start" and lease.event(START).status == "UNDONE" and begin + minute * MINUTE >= period.start:
            add(*_done(lease, START, minute))
        elif step == "longer":
            end = lease.event(END)
            later = Period(lease.period.start, lease.period.end + draw(st.integers(1, 9)) * MINUTE)
            planned = facts.PlannedEvent(end.id, END, later.end)
            add(facts.LeaseRescheduled(begin + minute * MINUTE, later, (planned,)))
        elif step == "delete":
            add(*event_transitions.delete(lease, begin + minute * MINUTE))
            break
    if not lease.gone and draw(st.booleans()):
        due = round((lease.event(END).due_at - begin) / MINUTE) + draw(st.integers(0, 5))
        add(*_done(lease, END, due))
    return happened


@given(lives())
def test_stretches_are_the_minutes_in_which_the_lease_had_the_hosts(happened: list[Fact]) -> None:
    assert +_length(happened) == _by_minute(happened, 150)


def test_a_host_that_was_replaced_counts_until_then() -> None:
    first = created(PERIOD)
    lease = evolve(None, first)
    late = PERIOD.start + 7 * MINUTE
    one = lease.reservations[0]
    other = facts.ReservationChanged(late, one.id, one.spec, (Hold(9, PERIOD),))
    seen = {stretch.host: stretch.during for stretch in stretches([first, other])}
    assert seen[9] == Period(late, lease.event(END).due_at)
    assert all(during == Period(PERIOD.start, late) for host, during in seen.items() if host != 9)
