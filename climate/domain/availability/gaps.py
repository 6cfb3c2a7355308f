"""Free times of numbered resources, such as whole hosts. Times are whole seconds since 1970."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from climate.domain.availability.daily_windows import Span

FAR = 1 << 40
"""A time after all others."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A count along time: `levels[i]` from `times[i]` on, until the next of `times`; `levels` has one more in front."""

    times: Sequence[int]
    levels: Sequence[int]

    @classmethod
    def of(cls, total: int, edges: list[int]) -> "Steps":
        """Return the steps for edges: twice the time, and one more where one less is free from then on."""
        edges.sort()
        levels = list(accumulate((1 - 2 * (edge & 1) for edge in edges), initial=total))
        return cls([edge >> 1 for edge in edges], levels)

    def at(self, moment: int) -> int:
        return self.levels[bisect_right(self.times, moment)]

    def at_least(self, count: int) -> Iterator[Span]:
        """Yield the spans in which the count is that high, ascending and apart from each other."""
        begin = -FAR if self.levels[0] >= count else None
        for at, level in zip(self.times, self.levels[1:], strict=True):
            if begin is None:
                begin = at if level >= count else None
            elif level < count:
                if begin < at:
                    yield begin, at
                begin = None
        if begin is not None:
            yield begin, FAR


def common(spans: Iterable[Span], others: Iterable[Span]) -> Iterator[Span]:
    """Yield the common parts of two ascending sequences of disjoint spans. Neither is read further than is needed."""
    left, right = iter(spans), iter(others)
    one, other = next(left, None), next(right, None)
    while one and other:
        begin, end = max(one[0], other[0]), min(one[1], other[1])
        if begin < end:
            yield begin, end
        if one[1] <= other[1]:
            one = next(left, None)
        else:
            other = next(right, None)


class Gaps(Protocol):
    """Gaps between the busy periods of numbered resources."""

    @property
    def numbers(self) -> Collection[int]:
        """All numbers, busy or not."""

    def free(self, start: int, until: int) -> list[int]:
        """Return the numbers that are free from `start` to `until`."""

    def starts(self, reach: int) -> Steps:
        """Return how many numbers are free for `reach` seconds, by their begin."""

    def lasting(self, reach: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the begins, ascending, and the ends of the gaps of `reach` seconds or more."""

    def without(self, left_out: Collection[int]) -> "Gaps":
        """Return the gaps of the other numbers."""


class ListedGaps:
    """Gaps between busy periods in lists, which are sorted and disjoint."""

    def __init__(self, busy: Mapping[int, Sequence[Span]]) -> None:
        self._busy = busy

    @property
    def numbers(self) -> Collection[int]:
        return self._busy.keys()

    def free(self, start: int, until: int) -> list[int]:
        return [number for number, periods in self._busy.items() if _is_free(periods, start, until)]

    def starts(self, reach: int) -> Steps:
        begins, ends = self.lasting(reach)
        return Steps.of(0, [begin << 1 for begin in begins] + [end - reach + 1 << 1 | 1 for end in ends])

    def lasting(self, reach: int) -> tuple[Sequence[int], Sequence[int]]:
        found = sorted(gap for periods in self._busy.values() for gap in _between(periods) if gap[1] - gap[0] >= reach)
        return [begin for begin, _ in found], [end for _, end in found]

    def without(self, left_out: Collection[int]) -> "ListedGaps":
        return ListedGaps({number: spans for number, spans in self._busy.items() if number not in left_out})


def _is_free(periods: Sequence[Span], start: int, until: int) -> bool:
    place = bisect_left(periods, (until,)) - 1
    return place < 0 or periods[place][1] <= start


def _between(periods: Sequence[Span]) -> Iterator[Span]:
    begin = -FAR
    for busy, end in periods:
        if begin < busy:
            yield begin, busy
        begin = end
    yield begin, FAR
