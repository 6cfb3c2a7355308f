"""Windows of the calendar: its period, the order of its rows, and the free count."""

from dataclasses import replace
from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import Forbidden, InvalidInput
from climate.domain.policy import Caller
from climate.service.hosts import inventory, timeline
from climate.service.hosts.timeline import Grouping, TimelineWindow
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, make


def test_usual_period_is_a_week_from_now(climate: Climate, clock: Clock) -> None:
    shown = timeline.read(climate, MEMBER, TimelineWindow())
    assert (shown.period.start, shown.period.end - shown.period.start) == (clock.time, timedelta(days=7))


@pytest.mark.parametrize("days", [0, -1, 401])
def test_period_must_be_one(climate: Climate, clock: Clock, days: int) -> None:
    with pytest.raises(InvalidInput, match="to "):
        timeline.read(climate, MEMBER, TimelineWindow(clock.time, clock.time + timedelta(days=days)))


def test_rows_are_ordered_by_group_and_name(climate: Climate) -> None:
    for host, rack in (("8", "a"), ("3", "b"), ("5", "a")):
        inventory.update(climate, ADMIN, host, {"rack": rack})
    shown = timeline.read(climate, ADMIN, TimelineWindow(group=Grouping.RACK))
    assert [(row.group, row.host.name) for row in shown.rows][-3:] == [("a", "h5"), ("a", "h8"), ("b", "h3")]
    assert shown.groups == {"": 5, "a": 2, "b": 1}
    folded = timeline.read(climate, ADMIN, TimelineWindow(group=Grouping.RACK, cursor=5, limit=2))
    assert [row.host.name for row in folded.rows] == ["h5", "h8"]


def test_free_count_is_that_of_the_project(climate: Climate, clock: Clock) -> None:
    inventory.update(climate, ADMIN, "1", {"authorized_projects": "other-project"})
    make(climate, clock, hosts_wanted(3), start=2, hours=3)
    shown = timeline.read(climate, MEMBER, TimelineWindow(points=100))
    assert shown.bookable == 7
    assert [count for _, count in shown.free or ()] == [7, 4, 7]


def test_reader_without_a_role_sees_nothing(climate: Climate) -> None:
    with pytest.raises(Forbidden):
        timeline.read(climate, Caller("u", "project"), TimelineWindow())


def test_hidden_names_are_not_searched(climate: Climate) -> None:
    hiding = replace(climate, settings=replace(climate.settings, lease_hosts="nothing"))
    assert timeline.read(hiding, MEMBER, TimelineWindow(search="h3")).total == 0
    assert timeline.read(hiding, MEMBER, TimelineWindow(hosts=frozenset({"h3"}))).total == 0
    assert timeline.read(hiding, MEMBER, TimelineWindow(hosts=frozenset({"3"}))).total == 1
