"""Packed timestamps against the same periods, decoded one by one."""

from dataclasses import replace
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.availability.demands import HOSTS, WholeDemand
from climate.domain.availability.openings import Span
from climate.store.allocation.busy_periods import decode, merged

EPOCH = 946_684_800

BEGIN = 2_000_000_000
spans = st.tuples(st.integers(BEGIN, BEGIN + 100), st.integers(1, 40)).map(lambda one: (one[0], one[0] + one[1]))
hosts = st.lists(st.lists(spans, max_size=5), min_size=1, max_size=5)


def packed(times: list[int], fraction: int) -> bytes | None:
    """Times as PostgreSQL sends them, each so many microseconds later."""
    sent = [pack(">q", (time - EPOCH) * 1_000_000 + fraction) for time in times]
    return b"".join(sent) or None


@given(hosts, st.dictionaries(st.integers(0, 4), spans, max_size=2), st.integers(0, 999_999))
def test_periods_and_free_numbers_are_those_of_each_host(
    periods: list[list[Span]], added: dict[int, Span], fraction: int
) -> None:
    rows = [
        (number, packed([one[0] for one in taken], fraction), packed([one[1] - 1 for one in taken], fraction or 10**6))
        for number, taken in enumerate(periods)
    ]
    further = {number: span for number, span in added.items() if number < len(periods)}
    busy, free = decode(rows, further)
    for number, taken in enumerate(periods):
        all_of_them = [*taken, *([further[number]] if number in further else [])]
        assert _seconds(busy[number]) == _seconds(all_of_them)
        assert list(busy[number]) == sorted(busy[number])
    demand = WholeDemand(HOSTS, 1, 1, 0, busy, free_number=free)
    counted = replace(demand, free_number=None).level()
    for moment in range(BEGIN - 10, BEGIN + 150):
        assert free.at(moment) == counted.at(moment) == sum(moment not in _seconds(one) for one in busy.values())


def _seconds(periods: object) -> set[int]:
    assert isinstance(periods, list)
    return {second for begin, end in periods for second in range(begin, end)}


def test_periods_that_touch_stay_apart() -> None:
    assert list(merged([(3, 5), (1, 3)])) == [(1, 3), (3, 5)]
    assert list(merged([(1, 4), (3, 5), (5, 6)])) == [(1, 6)]
