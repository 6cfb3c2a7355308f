"""Free capacity along time as a drawing: steps in a unit square, and the least and most of each day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from climate.domain.availability.free_counts import Point
from climate.domain.period import Period

WIDTH, HEIGHT = 1000, 60


@dataclass(frozen=True, slots=True)
class Step:
    """Rectangle of the drawing, and what it means."""

    x: float
    y: float
    width: float
    height: float
    start: datetime
    end: datetime
    free: int


@dataclass(frozen=True, slots=True)
class Day:
    """Least and most free hosts of a day."""

    start: datetime
    least: int
    most: int
    x: float


@dataclass(frozen=True, slots=True)
class FreeStrip:
    """Drawing of the free hosts of a period."""

    period: Period
    steps: Sequence[Step]
    days: Sequence[Day]
    most: int


def draw(points: Sequence[Point], period: Period, zone: tzinfo = UTC) -> FreeStrip:
    """Return the drawing of a free count that changes at these times."""
    spans = _spans(points, period)
    most = max((free for _, _, free in spans), default=0)
    steps = [_step(start, end, free, period, most) for start, end, free in spans]
    return FreeStrip(period, steps, _days(spans, period, zone), most)


def _spans(points: Sequence[Point], period: Period) -> list[tuple[datetime, datetime, int]]:
    starts = [max(period.start, datetime.fromtimestamp(at, UTC)) for at, _ in points]
    ends = [*starts[1:], period.end]
    known = zip(starts, ends, (free for _, free in points), strict=True)
    return [(start, end, free) for start, end, free in known if start < end]


def _step(start: datetime, end: datetime, free: int, period: Period, most: int) -> Step:
    left, right = _place(start, period), _place(end, period)
    height = round(HEIGHT * free / most, 2) if most else 0.0
    return Step(left, HEIGHT - height, round(right - left, 2), height, start, end, free)


def _place(moment: datetime, period: Period) -> float:
    return round(WIDTH * ((moment - period.start) / (period.end - period.start)), 2)


def _days(spans: Sequence[tuple[datetime, datetime, int]], period: Period, zone: tzinfo) -> list[Day]:
    days, begin = [], period.start
    while begin < period.end:
        own = begin.astimezone(zone)
        midnight = datetime.combine(own.date() + timedelta(days=1), time(), zone)
        end = min(period.end, midnight.astimezone(UTC))
        inside = [free for start, stop, free in spans if start < end and stop > begin]
        if inside:
            days.append(Day(begin, min(inside), max(inside), _place(begin, period)))
        begin = end
    return days
