"""The checks of the chaos suite find what they are for, and nothing else."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from climate.domain import facts
from climate.domain.events import event_transitions
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease, evolve, fold
from climate.domain.period import Period
from climate.domain.status import EventKind
from climate.store.journal.journal import Entry
from tests.domain.lease_factory import HOUR, NOON, created
from tests.system import checks

FIRST = Period(NOON + HOUR, NOON + 2 * HOUR)
SECOND = Period(NOON + 2 * HOUR, NOON + 3 * HOUR)
MINUTE = timedelta(minutes=1)


class Stream:
    """A lease with host 1 and the entries of its journal."""

    def __init__(self, period: Period) -> None:
        self.id = uuid4()
        first = created(period)
        self.lease: Lease = fold([first])
        self.entries = [entry(self.id, 1, first, NOON)]

    def add(self, at: datetime, happened: Iterable[facts.Fact]) -> None:
        for fact in happened:
            self.lease = evolve(self.lease, fact)
            self.entries.append(entry(self.id, len(self.entries) + 1, fact, at))

    def claim(self, kind: EventKind, at: datetime, token: int) -> None:
        self.add(at, [event_transitions.claim(self.lease, self.event(kind), token, at)])

    def put_back(self, at: datetime) -> None:
        event = self.event(EventKind.START)
        self.add(at, [facts.EventPutBack(event, at, at + MINUTE, "the lease before has the host", spent=False)])

    def take_back(self, at: datetime) -> None:
        """Take the claim of the start back before its work began, as a change by the owner does."""
        self.add(at, [facts.EventClaimTakenBack(self.event(EventKind.START), at, 0, None)])

    def finish(self, kind: EventKind, at: datetime) -> None:
        self.add(at, event_transitions.finish(self.lease, self.event(kind), at))

    def event(self, kind: EventKind) -> UUID:
        return self.lease.event(kind).id


def entry(stream: UUID, version: int, fact: facts.Fact | facts.HostFact, at: datetime) -> Entry:
    return Entry(stream, version, fact, {}, "", at)


def ended(at: datetime) -> Stream:
    """A lease of the first period that gives its host back at a time."""
    before = Stream(FIRST)
    before.claim(EventKind.START, FIRST.start, 1)
    before.finish(EventKind.START, FIRST.start)
    before.claim(EventKind.END, FIRST.end, 2)
    before.finish(EventKind.END, at)
    return before


def journal_of(*streams: Stream) -> dict[UUID, list[Entry]]:
    return {stream.id: stream.entries for stream in streams}


def test_a_claim_that_was_taken_back_is_no_second_lending() -> None:
    before, after = ended(FIRST.end + 2 * MINUTE), Stream(SECOND)
    after.claim(EventKind.START, SECOND.start + MINUTE, 1)
    after.take_back(SECOND.start + MINUTE)
    after.add(SECOND.start + 3 * MINUTE, event_transitions.delete(after.lease, SECOND.start + 3 * MINUTE))
    assert checks.of_hosts(journal_of(before, after)) == []


def test_a_claim_after_one_that_was_taken_back_counts() -> None:
    before, after = ended(FIRST.end + 2 * MINUTE), Stream(SECOND)
    after.claim(EventKind.START, SECOND.start, 1)
    after.take_back(SECOND.start)
    after.claim(EventKind.START, SECOND.start + MINUTE, 2)
    after.finish(EventKind.START, SECOND.start + MINUTE)
    assert len(checks.of_hosts(journal_of(before, after))) == 1


def test_a_start_that_waited_for_the_lease_before_is_no_second_lending() -> None:
    before, after = ended(FIRST.end + 2 * MINUTE), Stream(SECOND)
    after.claim(EventKind.START, SECOND.start, 1)
    after.put_back(SECOND.start + MINUTE)
    after.claim(EventKind.START, SECOND.start + 3 * MINUTE, 2)
    after.finish(EventKind.START, SECOND.start + 3 * MINUTE)
    assert checks.of_hosts(journal_of(before, after)) == []


def test_a_start_that_was_done_before_the_lease_before_ended_is_found() -> None:
    before, after = ended(FIRST.end + 2 * MINUTE), Stream(SECOND)
    after.claim(EventKind.START, SECOND.start, 1)
    after.finish(EventKind.START, SECOND.start)
    assert len(checks.of_hosts(journal_of(before, after))) == 1


@pytest.mark.parametrize(
    ("between", "wrong"), [((), 1), ((Pool.RESERVATION,), 0), ((Pool.CLEANING, Pool.RESERVATION), 0)]
)
def test_a_host_that_goes_from_lease_to_lease_directly_is_found(between: tuple[Pool, ...], wrong: int) -> None:
    stream, first, second = uuid4(), uuid4(), uuid4()
    route = [(Pool.LENT, first), (Pool.LENT, first), *((pool, None) for pool in between), (Pool.LENT, second)]
    moves = [
        entry(stream, number, facts.HostMoved(NOON, pool, "", reservation_id=reservation), NOON)
        for number, (pool, reservation) in enumerate(route, 1)
    ]
    assert len(checks.of_lent_hosts({stream: moves})) == wrong
