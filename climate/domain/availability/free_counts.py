"""The free count along time with a bounded number of points, for drawing."""

from bisect import bisect_left, bisect_right
from itertools import pairwise

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.gaps import Steps

FEW = 10_000
"""Number of steps up to which their changes are counted; several steps may be at one time."""

Point = tuple[int, int]
"""Time, and the count from then on."""


def points(steps: Steps, horizon: Span, most: int) -> list[Point]:
    """Return the steps within the horizon; the minimum over each of `most` equal parts if there are more steps."""
    first, last = bisect_right(steps.times, horizon[0]), bisect_left(steps.times, horizon[1])
    if last - first <= FEW:
        inside = {horizon[0]: steps.levels[first]}
        inside |= dict(zip(steps.times[first:last], steps.levels[first + 1 : last + 1], strict=True))
        exact = _changes(list(inside.items()))
        if len(exact) <= most:
            return exact
    begin, length = horizon[0], horizon[1] - horizon[0]
    edges = [begin + length * part // most for part in range(most + 1)]
    parts = []
    for low, high in pairwise(edges):
        if low < high:
            place = bisect_right(steps.times, low)
            parts.append((low, min(steps.levels[place : max(bisect_left(steps.times, high), place) + 1])))
    return _changes(parts)


def _changes(found: list[Point]) -> list[Point]:
    """Return the points without those that repeat the count before them."""
    return [one for index, one in enumerate(found) if not index or found[index - 1][1] != one[1]]
