"""Room for servers on shared hosts: per slot, at every instant, and the choice among hosts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain.hosts.shared_capacity import (
    NOTHING,
    Room,
    Size,
    SlotRequest,
    Use,
    by_host,
    choose,
    earliest_fit,
    fitting,
    free_slots,
    lasts_until,
    peak,
)
from climate.domain.period import Period

ZERO = datetime(2030, 1, 1, tzinfo=UTC)
ONE = Size(1, 1024, 10)


def during(start: int, end: int) -> Period:
    return Period(ZERO + timedelta(hours=start), ZERO + timedelta(hours=end))


def use(start: int, end: int, count: int = 1, host: int = 1) -> Use:
    return Use(host, during(start, end), ONE.times(count))


def rooms_of(
    capacities: Mapping[int, Size], uses: Mapping[int, list[Use]], order: SlotRequest, window: Period
) -> list[Room]:
    """The rooms of hosts, of which `uses` are known; the store counts them in SQL."""
    return [
        Room(host, free_slots(capacity, peak(uses.get(host, ()), window), order))
        for host, capacity in capacities.items()
    ]


spans = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
sizes = st.builds(Size, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
uses = st.lists(st.builds(lambda span, size: Use(1, during(*span), size), spans, sizes), max_size=8)


@given(uses, spans)
def test_the_peak_is_the_most_at_any_instant(taken: list[Use], span: tuple[int, int]) -> None:
    window = during(*span)
    instants = [ZERO + timedelta(hours=hour) for hour in range(*span)]
    then = [
        [one.size.parts for one in taken if one.size and one.during.start <= at < one.during.end] for at in instants
    ]
    most = [max(sum(parts[place] for parts in at) for at in then) for place in range(3)]
    assert peak(taken, window) == Size(*most)


def test_back_to_back_takes_no_more_than_one() -> None:
    assert peak([use(0, 2, 3), use(2, 4, 3)], during(0, 4)) == ONE.times(3)
    assert peak([use(0, 2, 3), use(4, 6, 3)], during(2, 4)) == NOTHING


def test_a_host_that_is_allocated_has_no_room() -> None:
    lent = Use(1, during(1, 2), None)
    assert peak([lent], during(0, 4)) is None
    assert peak([lent], during(2, 4)) == NOTHING
    assert free_slots(Size(8, 8192, 80), None, SlotRequest(ONE, 3)) == 0


@pytest.mark.parametrize(
    ("taken", "fits"),
    [(NOTHING, 4), (Size(0, 0, 70), 1), (Size(0, 8000, 0), 0), (Size(9, 0, 0), 0), (Size(7, 0, 0), 1)],
)
def test_what_is_scarcest_limits_the_slots(taken: Size, fits: int) -> None:
    assert free_slots(Size(8, 8192, 80), taken, SlotRequest(ONE, 4)) == fits


def test_what_servers_need_nothing_of_limits_nothing() -> None:
    assert free_slots(Size(2, 4096, 0), NOTHING, SlotRequest(Size(1, 1024, 0), 9)) == 2
    assert free_slots(Size(2, 4096, 0), NOTHING, SlotRequest(NOTHING, 9)) == 9


rooms = st.lists(st.integers(0, 4), max_size=5).map(lambda free: [Room(place, n) for place, n in enumerate(free)])


def possible(found: list[Room], amount: int, affinity: bool | None) -> bool:
    """By trying every way to spread the servers."""
    ways = product(*(range(room.free + 1) for room in found))
    fitting_ways = [way for way in ways if sum(way) == amount]
    if affinity is None:
        return bool(fitting_ways)
    return any(max(way, default=0) == (amount if affinity else 1) for way in fitting_ways)


@given(rooms, st.integers(1, 8), st.sampled_from([True, False, None]))
def test_a_choice_is_found_wherever_there_is_one(found: list[Room], amount: int, affinity: bool | None) -> None:
    chosen = choose(found, SlotRequest(ONE, amount, affinity))
    assert (chosen is not None) == possible(found, amount, affinity)
    if chosen is not None:
        _check(chosen, found, amount)
        assert affinity is None or set(chosen.values()) == {amount if affinity else 1}
    else:
        assert fitting(SlotRequest(ONE, amount, affinity), found) < amount


def _check(chosen: Mapping[int, int], found: list[Room], amount: int) -> None:
    free = {room.host: room.free for room in found}
    assert sum(chosen.values()) == amount
    assert all(0 < slots <= free[host] for host, slots in chosen.items())


def test_the_first_rooms_are_filled_first() -> None:
    assert choose([Room(7, 1), Room(3, 4), Room(1, 4)], SlotRequest(ONE, 4)) == {7: 1, 3: 3}


@pytest.mark.parametrize(
    ("order", "chosen"),
    [
        (SlotRequest(ONE, 4, None, {2: 1}), {2: 3, 1: 1}),  # what is in use stays, and is filled before others
        (SlotRequest(ONE, 2, False, {2: 1}), {2: 1, 1: 1}),
        (SlotRequest(ONE, 3, True, {2: 1}), {2: 3}),
        (SlotRequest(ONE, 4, True, {2: 1}), None),  # the other host would have room, but the servers are here
        (SlotRequest(ONE, 4, None, {3: 1}), None),  # a host in use has no room any more
        (SlotRequest(ONE, 1, None, {2: 1}), {2: 1}),
    ],
)
def test_slots_in_use_stay(order: SlotRequest, chosen: Mapping[int, int] | None) -> None:
    assert choose([Room(1, 4), Room(2, 3)], order) == chosen


@given(uses, st.integers(1, 3))
def test_the_earliest_fit_is_the_first_hour_that_fits(taken: list[Use], amount: int) -> None:
    capacities, order, window = {1: Size(4, 4, 4)}, SlotRequest(Size(1, 1, 1), amount), during(0, 3)
    known = by_host(taken)

    def fits(start: int) -> bool:
        then = during(start, start + 3)
        return choose(rooms_of(capacities, known, order, then), order) is not None

    if fits(0):
        return
    first = next(start for start in range(1, 30) if fits(start))
    assert earliest_fit(capacities, taken, order, window, during(0, 99).end) == during(first, first + 3).start
    assert earliest_fit(capacities, taken, order, window, during(0, first + 2).end) is None


def test_how_long_slots_in_use_can_last() -> None:
    capacities, order = {1: Size(4, 8192, 80)}, SlotRequest(ONE, 2, None, {1: 2})
    taken = [use(0, 9, 2), use(5, 6, 1)]
    assert lasts_until(capacities, taken, order, during(0, 8)) == ZERO + timedelta(hours=5)
    assert lasts_until(capacities, taken, order, during(0, 5)) is None
    assert lasts_until(capacities, [Use(1, during(4, 5), None)], order, during(0, 8)) == ZERO + timedelta(hours=4)


many = st.lists(
    st.builds(
        lambda host, span, size: Use(host, during(*span), size),
        st.integers(1, 3),
        spans,
        st.one_of(st.none(), st.builds(Size, st.integers(1, 3), st.integers(0, 2), st.integers(0, 2))),
    ),
    max_size=9,
)


@given(many, st.integers(1, 5), st.sampled_from([True, False, None]), st.integers(1, 4), st.integers(0, 6))
def test_the_earliest_fit_among_several_hosts(
    taken: list[Use], amount: int, affinity: bool | None, length: int, start: int
) -> None:
    capacities = {1: Size(2, 4, 4), 2: Size(4, 4, 4), 3: Size(6, 9, 9)}
    order, known = SlotRequest(Size(1, 1, 1), amount, affinity), by_host(taken)

    def fits(hour: int) -> bool:
        then = during(hour, hour + length)
        return choose(rooms_of(capacities, known, order, then), order) is not None

    if fits(start):
        return
    first = next((hour for hour in range(start, 30) if fits(hour)), None)
    found = earliest_fit(capacities, taken, order, during(start, start + length), during(0, 99).end)
    assert found == (None if first is None else during(first, first + 1).start)


@given(many, st.integers(1, 2), st.integers(0, 6))
def test_slots_in_use_last_until_somebody_else_needs_their_room(taken: list[Use], kept: int, start: int) -> None:
    capacities, known = {1: Size(2, 4, 4), 2: Size(4, 4, 4), 3: Size(6, 9, 9)}, by_host(taken)
    order = SlotRequest(Size(1, 1, 1), 2 * kept, None, {1: kept, 3: kept})

    def last(hour: int) -> bool:
        free = {room.host: room.free for room in rooms_of(capacities, known, order, during(hour, hour + 1))}
        return all(free[host] >= count for host, count in order.kept.items())

    if last(start):
        first = next((hour for hour in range(start, start + 9) if not last(hour)), None)
        found = lasts_until(capacities, taken, order, during(start, start + 9))
        assert found == (None if first is None else during(first, first + 1).start)


class Read(Period):
    """Counts how often it is looked at."""

    count = 0

    def __getattribute__(self, name: str) -> object:
        Read.count += name in ("start", "end")
        return super().__getattribute__(name)


@pytest.mark.parametrize("many", [50, 400])
def test_no_use_is_looked_at_again_for_every_other_one(many: int) -> None:
    taken = [Use(1, Read(*_ends(during(place, place + 2 + place % 7))), ONE) for place in range(many)]
    order = SlotRequest(ONE, 8, None, {1: 8})
    Read.count = 0
    assert earliest_fit({1: Size(8, 8192, 80)}, taken, order, during(0, 2), during(0, 999).end)
    assert lasts_until({1: Size(8, 8192, 80)}, taken, order, during(0, many)) == during(1, 2).start
    assert Read.count <= 20 * many


def _ends(period: Period) -> tuple[datetime, datetime]:
    return period.start, period.end
