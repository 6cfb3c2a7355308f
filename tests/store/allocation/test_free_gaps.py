"""Packed timestamps against the same periods, second by second and in lists."""

from collections.abc import Iterable
from itertools import product
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.gaps import ListedGaps
from climate.store.allocation.free_gaps import decode

EPOCH = 946_684_800

BEGIN = 2_000_000_000
spans = st.tuples(st.integers(BEGIN, BEGIN + 100), st.integers(1, 40)).map(lambda one: (one[0], one[0] + one[1]))
hosts = st.lists(st.lists(spans, max_size=5), min_size=1, max_size=5)


def packed(times: list[int], fraction: int) -> bytes | None:
    """Times as PostgreSQL sends them, each so many microseconds later."""
    sent = [pack(">q", (time - EPOCH) * 1_000_000 + fraction) for time in times]
    return b"".join(sent) or None


@given(hosts, st.dictionaries(st.integers(0, 4), spans, max_size=2), st.integers(0, 999_999))
def test_gaps_are_the_times_between_the_periods_of_each_host(
    periods: list[list[Span]], added: dict[int, Span], fraction: int
) -> None:
    rows = [
        (number, packed([one[0] for one in taken], fraction), packed([one[1] - 1 for one in taken], fraction or 10**6))
        for number, taken in enumerate(periods)
    ]
    further = {number: span for number, span in added.items() if number < len(periods)}
    gaps = decode(rows, further)
    busy = {
        number: _seconds([*taken, *([further[number]] if number in further else [])])
        for number, taken in enumerate(periods)
    }
    assert list(gaps.numbers) == list(busy)
    for start, until in product(range(BEGIN - 3, BEGIN + 150, 5), (1, 4, 30)):
        expected = [number for number, taken in busy.items() if taken.isdisjoint(range(start, start + until))]
        assert sorted(gaps.free(start, start + until)) == expected
        assert gaps.starts(until).at(start) == len(expected)


@given(hosts, st.sets(st.integers(0, 4), max_size=2), st.integers(1, 50))
def test_gaps_as_arrays_are_those_of_lists(periods: list[list[Span]], left_out: set[int], reach: int) -> None:
    rows = [
        (number, packed([one[0] for one in taken], 0), packed([one[1] for one in taken], 0))
        for number, taken in enumerate(periods)
    ]
    listed = ListedGaps({number: _merged(taken) for number, taken in enumerate(periods)})
    for gaps, expected in ((decode(rows, {}), listed), (decode(rows, {}).without(left_out), listed.without(left_out))):
        assert list(gaps.numbers) == list(expected.numbers)
        assert _after_1970(zip(*gaps.lasting(reach), strict=True)) == _after_1970(
            zip(*expected.lasting(reach), strict=True)
        )
        assert _after_1970(gaps.starts(reach).at_least(1)) == _after_1970(expected.starts(reach).at_least(1))
        assert gaps.free(BEGIN + 20, BEGIN + 20 + reach) == expected.free(BEGIN + 20, BEGIN + 20 + reach)


def test_without_hosts_nothing_is_free() -> None:
    gaps = decode([], {})
    assert (gaps.free(BEGIN, BEGIN + 1), list(gaps.starts(1).at_least(1)), gaps.lasting(1)) == ([], [], ([], []))


def _after_1970(spans: Iterable[Span]) -> list[Span]:
    """Arrays begin in 1970, lists at no time."""
    return sorted((max(begin, 0), end) for begin, end in spans)


def _merged(periods: list[Span]) -> list[Span]:
    seconds = _seconds(periods)
    begins = sorted(one for one in seconds if one - 1 not in seconds)
    return list(zip(begins, sorted(one + 1 for one in seconds if one + 1 not in seconds), strict=True))


def _seconds(periods: list[Span]) -> set[int]:
    return {second for begin, end in periods for second in range(begin, end)}
