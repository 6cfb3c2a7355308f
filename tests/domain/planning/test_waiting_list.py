"""The waiting list is served in its order, and those in front are not starved."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID, uuid4

import pytest

from benchmarks import waiting_month
from climate.domain.errors import Conflict, IllegalMove, InvalidInput
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import LeaseCreated, PlannedReservation, WaitExpired
from climate.domain.lease import Lease, fold
from climate.domain.period import Period
from climate.domain.planning import waiting_list
from climate.domain.planning.waiting_list import Entry, Rule, Wait, serve
from climate.domain.status import EventKind, LeaseStatus

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTS = 4


@dataclass
class Cluster:
    """A slow, obviously right world: each host has the periods for which it is taken."""

    taken: dict[int, list[Period]] = field(default_factory=lambda: {host: [] for host in range(HOSTS)})
    granted: list[tuple[Entry, Period, list[int], frozenset[int]]] = field(default_factory=list)

    def usable(self, period: Period, kept: Set[int] = frozenset()) -> list[int]:
        return [
            host for host, periods in self.taken.items() if host not in kept and not any(map(period.overlaps, periods))
        ]

    def fits(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        return len(self.usable(period, kept)) >= least(entry)

    def grant(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        chosen = self.usable(period, kept)[: least(entry)]
        if len(chosen) < least(entry):
            return False
        for host in chosen:
            self.taken[host].append(period)
        self.granted.append((entry, period, chosen, frozenset(kept)))
        return True

    def first(self, entry: Entry, now: datetime, kept: Set[int]) -> Period | None:
        length = entry.asked.end - entry.asked.start
        begin = entry.period(now).start
        ends = {period.end for periods in self.taken.values() for period in periods}
        for start in sorted({begin, *(end for end in ends if begin <= end <= entry.until)}):
            if self.fits(entry, Period(start, start + length), kept):
                return Period(start, start + length)
        return None

    def free(self, entry: Entry, period: Period) -> frozenset[int]:
        return frozenset(self.usable(period))


def least(entry: Entry) -> int:
    return int(str(entry.reservations[0][1]["min"]))


def entry(hosts: int, start: int, hours: int, *, until: int | None = None, since: int = 0) -> Entry:
    """An entry with times in hours from noon; `since` is how long it has waited."""
    asked = Period(NOON + start * HOUR, NOON + (start + hours) * HOUR)
    end = asked.start if until is None else NOON + until * HOUR
    return Entry(uuid4(), "p", "u", asked, end, NOON - since * HOUR, [("physical:host", {"min": hosts})])


def given(world: Cluster, line: list[Entry], rule: Rule = Rule(HOUR, 1)) -> list[int]:  # noqa: B008
    """The places of those that got something."""
    served = list(serve(line, world, NOON, rule))
    return [place for place, one in enumerate(line) if one.lease_id in served]


def test_the_first_are_served_first_and_what_does_not_fit_is_passed_over() -> None:
    world = Cluster()
    line = [entry(3, 1, 2), entry(2, 1, 2), entry(1, 2, 2), entry(1, 2, 2), entry(4, 4, 1)]
    assert given(world, line) == [0, 2, 4]


def test_a_moving_entry_is_promised_a_later_period_after_the_patience_only() -> None:
    for since, expected in ((0, [1]), (1, [0, 1])):
        world = Cluster()
        world.taken[0].append(Period(NOON, NOON + 3 * HOUR))
        line = [entry(4, 0, 2, until=8, since=since), entry(1, 0, 3, until=8)]
        assert given(world, line) == expected
        if expected == [0, 1]:
            assert world.granted[0][1] == Period(NOON + 3 * HOUR, NOON + 5 * HOUR)


def test_no_more_periods_are_promised_than_the_rule_allows() -> None:
    for promises, expected in ((0, []), (1, [0]), (2, [0, 1])):
        world = Cluster()
        world.taken[0].append(Period(NOON, NOON + 3 * HOUR))
        line = [entry(4, 0, 1, until=8, since=2) for _ in range(3)]
        assert given(world, line, Rule(HOUR, promises)) == expected


def test_what_is_free_for_a_fixed_period_is_kept_from_those_behind_it_where_they_overlap() -> None:
    world = Cluster()
    world.taken[0].append(Period(NOON, NOON + 9 * HOUR))
    line = [entry(4, 5, 2, since=2), entry(1, 4, 2), entry(1, 7, 2), entry(1, 1, 3, since=1)]
    assert given(world, line) == [2, 3]
    assert given(Cluster(), line, Rule(None)) == [0, 2, 3]


def test_an_entry_that_is_passed_over_is_not_tried_but_protected() -> None:
    world = Cluster()
    first = entry(4, 5, 2, since=2)
    passed = Entry(*[getattr(first, name) for name in Entry.__slots__[:-1]], True)  # type: ignore[arg-type]
    assert given(world, [passed, entry(1, 5, 2)]) == []


def test_an_entry_whose_wait_is_over_gets_nothing() -> None:
    assert given(Cluster(), [entry(1, -3, 2, until=0), entry(1, 0, 2)]) == []


@pytest.mark.parametrize("seed", range(40))
def test_random_lines_are_served_as_the_rule_says(seed: int) -> None:
    chance = Random(seed)
    world = Cluster()
    for host in range(HOSTS):
        begin = NOON + chance.randrange(6) * HOUR
        world.taken[host].append(Period(begin, begin + chance.randrange(1, 6) * HOUR))
    line = [
        entry(
            chance.randrange(1, HOSTS + 1),
            start := chance.randrange(6),
            chance.randrange(1, 4),
            until=None if chance.random() < 0.5 else start + chance.randrange(1, 6),
            since=chance.randrange(3),
        )
        for _ in range(12)
    ]
    line.sort(key=lambda one: one.since)
    before = {host: list(periods) for host, periods in world.taken.items()}
    rule = Rule(HOUR, chance.randrange(3))
    served = list(serve(line, world, NOON, rule))

    # Nothing is given twice, nor what was taken before.
    everything = [(host, period) for _, period, hosts, _ in world.granted for host in hosts]
    for place, (host, period) in enumerate(everything):
        others = [*before[host], *(other for at, other in everything[:place] if at == host)]
        assert not any(period.overlaps(other) for other in others)

    grants = {one.lease_id: (period, hosts) for one, period, hosts, _ in world.granted}
    assert list(grants) == served
    follow_the_rule(line, Cluster(before), grants, NOON, rule)


Grants = Mapping[UUID, tuple[Period, Sequence[int]]]


def follow_the_rule(line: list[Entry], replay: Cluster, grants: Grants, now: datetime, rule: Rule) -> None:
    """Replay what was given in the order of the list: whoever fits at its turn gets something, and nobody else."""
    protected: list[tuple[Period, frozenset[int]]] = []
    promises = rule.promises
    for one in line:
        got = grants.get(one.lease_id)
        if one.until <= now:
            assert got is None
            continue
        period = one.period(now)
        kept = _kept_in(protected, period)
        late = got is not None and got[0] != period
        assert replay.fits(one, period, kept) == (got is not None and not late)
        is_patient = rule.patience is not None and now - one.since >= rule.patience
        if got is None and is_patient and not one.moves:
            protected.append((period, replay.free(one, period)))
        if one.moves and is_patient and promises > 0 and (got is None or late):
            reach = Period(period.start, one.reach)
            kept = _kept_in(protected, reach)
            assert (got[0] if got else None) == replay.first(one, now, kept)
            promises -= late
        else:
            assert not late
        if got is not None:
            assert not kept & set(got[1])
            for host in got[1]:
                assert not any(map(got[0].overlaps, replay.taken[host]))
                replay.taken[host].append(got[0])


def _kept_in(protected: Sequence[tuple[Period, frozenset[int]]], period: Period) -> frozenset[int]:
    return frozenset().union(*(hosts for during, hosts in protected if during.overlaps(period)))


def test_large_requests_of_a_month_are_not_starved_by_small_ones() -> None:
    load = waiting_month.Load(days=12)
    without, ruled = waiting_month.run(load, None), waiting_month.run(load, HOUR)
    assert (without.large.refused, ruled.large.refused) == (0, 0)
    assert ruled.large.at(0.95) < 0.6 * without.large.at(0.95)
    assert ruled.small.at(0.5) < 1
    assert abs(ruled.used - without.used) < 0.03


def waiting_lease(until: datetime = NOON + HOUR) -> Lease:
    period = Period(NOON + HOUR, NOON + 3 * HOUR)
    events = event_transitions.plan(Times(period, wait_until=until), uuid4)
    asked = PlannedReservation(UUID(int=1), "physical:host", {"min": 1, "max": 1})
    return fold([LeaseCreated(uuid4(), NOON, "l", "p", "u", period, (asked,), events)])


def test_no_other_event_runs_while_a_lease_waits() -> None:
    lease = waiting_lease(NOON + 5 * HOUR)
    assert (lease.status, lease.waits, lease.held) == (LeaseStatus.PENDING, True, False)
    assert event_transitions.due(lease, NOON + 4 * HOUR) == []
    [over] = event_transitions.due(lease, NOON + 5 * HOUR)
    assert over.kind is EventKind.WAIT_OVER
    with pytest.raises(Conflict, match="in the waiting list until 2030-01-01 17:00:00"):
        waiting_list.refuse_while_waiting(lease)


def test_a_wait_in_vain_ends_the_lease_and_is_never_given_up() -> None:
    lease = waiting_lease()
    over = lease.wait_over
    assert over is not None
    assert waiting_list.running(lease, NOON) == over
    assert waiting_list.running(lease, NOON + HOUR) is None
    begun = fold([event_transitions.claim(lease, over.id, 7, NOON + HOUR)], lease)
    assert (begun.waits, waiting_list.running(begun, NOON)) == (True, None)
    with pytest.raises(IllegalMove):
        event_transitions.fail(begun, over.id, NOON, "no")
    facts = event_transitions.finish(begun, over.id, NOON + HOUR)
    assert isinstance(facts[0], WaitExpired)
    after = fold(facts, begun)
    assert (after.gone, after.waits) == (True, False)


def test_a_granted_lease_is_like_any_other() -> None:
    lease = waiting_lease()
    over = lease.wait_over
    assert over is not None
    after = fold([waiting_list.granted(over, (PlannedReservation(UUID(int=1), "physical:host", {}),), NOON)], lease)
    assert (after.waits, after.status, after.reason) == (False, LeaseStatus.PENDING, None)
    assert [one.kind for one in event_transitions.due(after, NOON + HOUR)] == [EventKind.START]
    assert waiting_list.running(after, NOON) is None
    waiting_list.refuse_while_waiting(after)


def test_the_end_of_a_wait_is_its_start_unless_it_is_given() -> None:
    assert waiting_list.until(Wait(), NOON + HOUR, NOON) == NOON + HOUR
    assert waiting_list.until(Wait(NOON + 2 * HOUR), NOON + HOUR, NOON) == NOON + 2 * HOUR
    assert waiting_list.until(Wait(NOON + HOUR), None, NOON) == NOON + HOUR
    for wait, start in (
        (Wait(), None),
        (Wait(NOON), NOON + HOUR),
        (Wait(NOON + waiting_list.LONGEST + HOUR), NOON + HOUR),
    ):
        with pytest.raises(InvalidInput):
            waiting_list.until(wait, start, NOON)
