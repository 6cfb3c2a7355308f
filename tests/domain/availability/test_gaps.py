"""Gaps between busy periods against each second, and spans of a count."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.gaps import FAR, ListedGaps, Steps, common

END = 40
cuts = st.lists(st.integers(0, END), unique=True, max_size=8).map(sorted)
spans = cuts.map(lambda known: list(zip(known[::2], known[1::2], strict=False)))
busy = st.dictionaries(st.integers(0, 5), spans, max_size=5)


def seconds(periods: list[Span]) -> set[int]:
    return {second for begin, end in periods for second in range(begin, end)}


@given(busy, st.integers(1, 9))
def test_gaps_are_free_for_as_long_as_is_asked_for(periods: dict[int, list[Span]], reach: int) -> None:
    gaps, counts = ListedGaps(periods), ListedGaps(periods).starts(reach)
    taken = {number: seconds(known) for number, known in periods.items()}
    assert list(gaps.numbers) == list(periods)
    for start in range(END):
        free = [number for number, known in taken.items() if known.isdisjoint(range(start, start + reach))]
        assert gaps.free(start, start + reach) == free
        assert counts.at(start) == len(free)
    begins, ends = gaps.lasting(reach)
    assert list(begins) == sorted(begins)
    assert all(end - begin >= reach for begin, end in zip(begins, ends, strict=True))


@given(busy, st.integers(1, 3))
def test_a_count_is_high_enough_in_spans_apart_from_each_other(periods: dict[int, list[Span]], count: int) -> None:
    steps = ListedGaps(periods).starts(1)
    found = list(steps.at_least(count))
    assert all(former[1] < later[0] for former, later in pairwise(found))
    for moment in range(-1, END + 2):
        assert any(begin <= moment < end for begin, end in found) == (steps.at(moment) >= count)


@given(spans, spans)
def test_common_parts_are_in_both(some: list[Span], others: list[Span]) -> None:
    assert seconds(list(common(some, others))) == seconds(some) & seconds(others)


def test_spans_are_read_no_further_than_is_needed() -> None:
    read = []

    def many() -> Iterator[Span]:
        for begin in range(0, 100, 10):
            read.append(begin)
            yield begin, begin + 5

    assert next(common([(12, 50)], many())) == (12, 15)
    assert read == [0, 10]


def test_left_out_numbers_are_not_free() -> None:
    gaps = ListedGaps({1: [], 2: [(3, 4)], 3: []}).without({1})
    assert (list(gaps.numbers), gaps.free(3, 4)) == ([2, 3], [3])


def test_steps_without_edges_stay_at_their_count() -> None:
    assert Steps.of(3, []).at(0) == 3
    assert list(Steps.of(3, []).at_least(3)) == [(-FAR, FAR)]
    assert list(Steps.of(3, []).at_least(4)) == []
