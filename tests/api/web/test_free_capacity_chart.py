"""The drawing of free hosts: it covers the period, and says what the numbers say."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from api.web.free_capacity_chart import HEIGHT, WIDTH, draw
from climate.domain.period import Period

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
PERIOD = Period(START, START + timedelta(days=14))
POINTS = st.lists(
    st.tuples(st.integers(0, 14 * 86400 - 1), st.integers(0, 50)), max_size=40, unique_by=lambda one: one[0]
)


@given(st.integers(0, 50), POINTS)
def test_steps_cover_the_period_and_days_have_their_extremes(first: int, changes: list[tuple[int, int]]) -> None:
    begin = int(START.timestamp())
    points = [(begin, first), *sorted((begin + at, free) for at, free in changes if at)]
    drawn = draw(points, PERIOD)
    assert drawn.steps[0].start == PERIOD.start
    assert drawn.steps[-1].end == PERIOD.end
    assert all(one.end == other.start for one, other in zip(drawn.steps, drawn.steps[1:], strict=False))
    assert all(0 <= one.y <= HEIGHT and 0 <= one.x <= WIDTH for one in drawn.steps)
    assert drawn.most == max(free for _, free in points)
    for day, following in zip(drawn.days, [*(one.start for one in drawn.days[1:]), PERIOD.end], strict=True):
        inside = [one.free for one in drawn.steps if one.start < following and one.end > day.start]
        assert (day.least, day.most) == (min(inside), max(inside))
