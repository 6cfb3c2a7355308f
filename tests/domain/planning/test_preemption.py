"""Preemptible reservations: the plans to take hosts, and the holds that they shorten."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.planning import preemption
from climate.domain.planning.preemption_facts import HostPreempted, PreemptionPlanned, PreemptionWarned

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
R, TAKER, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
NOTICE, LEAD = timedelta(minutes=2), timedelta(minutes=5)
minutes = st.integers(-600, 600).map(lambda number: timedelta(minutes=number))


def hold(host: int = 7, hours: int = 8) -> Hold:
    return Hold(host, Period(NOON, NOON + timedelta(hours=hours)))


def planned(needed_from: datetime, host: int = 7) -> PreemptionPlanned:
    return preemption.plan(R, hold(host), (needed_from, TAKER), NOON, NOTICE, LEAD)


@given(minutes)
def test_a_hold_ends_when_the_host_is_needed_and_the_notice_is_kept(ahead: timedelta) -> None:
    fact = planned(NOON + ahead)
    assert fact.during.end == NOON + ahead
    assert fact.during.start < fact.during.end
    assert fact.take_at >= NOON + NOTICE
    assert fact.take_at - fact.warn_at == NOTICE
    assert fact.take_at == NOON + NOTICE or fact.take_at == fact.during.end - LEAD


def test_a_later_plan_for_a_host_replaces_the_earlier_one() -> None:
    first, second = planned(NOON + timedelta(hours=5)), planned(NOON + timedelta(hours=3))
    holds, plans = preemption.changed((hold(), hold(8)), (), first)
    holds, plans = preemption.changed(holds, plans, PreemptionWarned(R, NOON, (7,)))
    assert [one.warned for one in plans] == [True]
    holds, plans = preemption.changed(holds, plans, second)
    assert [(one.host, one.until, one.warned) for one in plans] == [(7, NOON + timedelta(hours=3), False)]
    assert holds == (replace(hold(), during=second.during), hold(8))


def test_a_host_that_is_taken_leaves_the_others() -> None:
    holds, plans = preemption.changed((hold(), hold(8)), (), planned(NOON + timedelta(hours=1)))
    holds, plans = preemption.changed(holds, plans, planned(NOON + timedelta(hours=1), 8))
    holds, plans = preemption.changed(holds, plans, HostPreempted(R, NOON, 7, TAKER))
    assert [one.host for one in holds] == [one.host for one in plans] == [8]


def test_a_warning_says_which_hosts_are_replaced() -> None:
    holds, plans = preemption.changed((hold(), hold(8)), (), planned(NOON + timedelta(hours=1)))
    holds, plans = preemption.changed(holds, plans, planned(NOON + timedelta(hours=1), 8))
    _, plans = preemption.changed(holds, plans, PreemptionWarned(R, NOON, (7, 8), (8,)))
    assert [(one.host, one.warned, one.replaced) for one in plans] == [(7, True, False), (8, True, True)]


def test_a_plan_stands_as_long_as_the_hold_ends_in_time() -> None:
    holds, plans = preemption.changed((hold(), hold(8)), (), planned(NOON + timedelta(hours=1)))
    assert preemption.standing(plans, holds) == plans
    assert preemption.standing(plans, [hold(), hold(8)]) == (), "it got the host for longer again"
    assert preemption.standing(plans, [hold(8)]) == ()


def test_no_change_of_dates_prolongs_a_host_that_is_promised_to_others() -> None:
    holds, plans = preemption.changed((hold(), hold(8)), (), planned(NOON + timedelta(hours=2)))
    shorter = (hold(hours=4), hold(8, hours=4))
    assert preemption.not_prolonged(holds, shorter, plans) == (holds[0], hold(8, hours=4))
    shortest = (hold(hours=1), hold(8, hours=1))
    assert preemption.not_prolonged(holds, shortest, plans) == shortest
