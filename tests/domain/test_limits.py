"""Limits against a count that goes through time minute by minute."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from climate.domain.errors import LimitExceeded
from climate.domain.events.event_transitions import Times, plan
from climate.domain.facts import Hold, LeaseCreated, PlannedReservation
from climate.domain.lease import Lease, fold
from climate.domain.limits import IN_USE, NO_LIMIT, NOTHING, SAYS, HoldingChange, Limit, LimitRequest, Use, check, most
from climate.domain.period import Period

NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
DAYS = timedelta(hours=6)
"""A period short enough to be gone through."""


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


def lease(start: float, end: float, hosts: int = 1, slots: int = 0, grace: float = 0) -> Lease:
    period = Period(at(start), at(end))
    holds = [Hold(number, period) for number in range(hosts)]
    holds += [Hold(100, period, slots)] if slots else []
    events = plan(Times(period, grace=timedelta(hours=grace)), lambda: UUID(int=1))
    events = tuple(type(e)(UUID(int=place), e.kind, e.due_at) for place, e in enumerate(events))
    planned = PlannedReservation(UUID(int=1), "physical:host", {}, None, tuple(holds))
    return fold([LeaseCreated(UUID(int=1), NOON, "l", "p", "u", period, (planned,), events)])


def use(*taken: tuple[float, float, int]) -> Use:
    edges = [HoldingChange(at(start), hosts) for start, _, hosts in taken] + [
        HoldingChange(at(end), -hosts) for _, end, hosts in taken
    ]
    return Use(len(taken), tuple(edges))


def refusal(
    limits: dict[Limit, int], after: Lease, others: Use = NOTHING, before: Lease | None = None
) -> dict[str, object]:
    """What is said of the limit, {} where nothing is in the way."""
    try:
        check(limits, LimitRequest(after, before, NOON, DAYS), others)
    except LimitExceeded as error:
        return {**error.details["limit"], "message": str(error)}
    return {}


CASES = {
    "as long as allowed": ({Limit.MAX_LEASE_SECONDS: 7200}, lease(0, 2), NOTHING, None),
    "longer": ({Limit.MAX_LEASE_SECONDS: 7199}, lease(0, 2), NOTHING, (0, 7200)),
    "as far ahead as allowed": ({Limit.MAX_LEAD_SECONDS: 7200}, lease(2, 4), NOTHING, None),
    "further ahead": ({Limit.MAX_LEAD_SECONDS: 7199}, lease(2, 4), NOTHING, (0, 7200)),
    "the last lease": ({Limit.LEASES: 3}, lease(0, 1), use((0, 1, 1), (9, 10, 1)), None),
    "one lease too many": ({Limit.LEASES: 2}, lease(0, 1), use((0, 1, 1), (9, 10, 1)), (2, 1)),
    "back to back": ({Limit.HOSTS_AT_ONCE: 4}, lease(1, 2, 4), use((0, 1, 4), (2, 3, 4)), None),
    "a moment of overlap": ({Limit.HOSTS_AT_ONCE: 4}, lease(0.999, 2, 2), use((0, 1, 3)), (3, 2)),
    "others that do not meet": ({Limit.HOSTS_AT_ONCE: 4}, lease(0, 9, 2), use((0, 1, 2), (1, 2, 2)), None),
    "grace counts": ({Limit.HOSTS_AT_ONCE: 4}, lease(0, 1, 2, grace=1), use((1, 2, 3)), (3, 2)),
    "slots are no hosts": ({Limit.HOSTS_AT_ONCE: 1, Limit.SLOTS_AT_ONCE: 8}, lease(0, 1, 1, 8), NOTHING, None),
    "slots": ({Limit.SLOTS_AT_ONCE: 7}, lease(0, 1, 1, 8), NOTHING, (0, 8)),
    "hours": ({Limit.HOST_HOURS: 8}, lease(0, 4, 2), NOTHING, None),
    "too many hours": ({Limit.HOST_HOURS: 9}, lease(0, 4, 2), use((4, 6, 1)), (2, 8)),
    "hours long ago": ({Limit.HOST_HOURS: 8}, lease(6, 10, 2), use((-4, 0, 2), (16, 20, 2)), None),
    "hours of a period that rolls": ({Limit.HOST_HOURS: 8}, lease(5, 9, 2), use((-4, 0, 1), (0, 4, 1)), (1, 8)),
    "no limit": (dict.fromkeys(Limit, NO_LIMIT), lease(900, 9000, 99, 99), use((0, 9000, 99)), None),
    "nothing allowed": ({Limit.LEASES: 0}, lease(0, 1), NOTHING, (0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused(name: str) -> None:
    limits, after, others, told = CASES[name]
    found = refusal(limits, after, others)
    assert all(str(found[key]) in str(found["message"]) for key in ("name", "value", "asked") if found)
    assert (found.get("used"), found.get("asked")) == (told or (None, None))


def test_what_is_beyond_a_limit_may_stay_and_become_less_but_not_more() -> None:
    limits = {Limit.HOSTS_AT_ONCE: 2, Limit.LEASES: 0, Limit.MAX_LEASE_SECONDS: 60, Limit.HOST_HOURS: 1}
    before = lease(0, 4, 4)
    assert refusal(limits, before, before=before) == {}
    assert refusal(limits, lease(0, 3, 3), before=before) == {}
    assert refusal(limits, lease(0, 5, 4), before=before)["name"] == "max_lease_seconds"
    assert refusal(limits, lease(0, 3, 5), before=before)["name"] == "hosts_at_once"
    assert refusal({Limit.HOST_HOURS: 1}, lease(0, 4, 5), before=before)["name"] == "host_hours"


def test_a_lease_that_stays_where_it_is_is_not_further_ahead_than_it_was() -> None:
    limits = {Limit.MAX_LEAD_SECONDS: 60}
    assert refusal(limits, lease(2, 5), before=lease(2, 3)) == {}
    assert refusal(limits, lease(1, 5), before=lease(2, 3)) == {}
    assert refusal(limits, lease(3, 5), before=lease(2, 3))["asked"] == 3 * 3600


def test_every_limit_is_explained() -> None:
    assert set(SAYS) == set(Limit) >= IN_USE


spans = st.tuples(st.integers(-20, 20), st.integers(1, 12), st.integers(1, 3)).map(lambda s: (s[0], s[0] + s[1], s[2]))


def test_what_others_have_beyond_a_limit_is_not_held_against_a_lease_at_another_time() -> None:
    limits = {Limit.HOSTS_AT_ONCE: 2, Limit.HOST_HOURS: 12}
    others = use((-9, 0, 9), (20, 30, 9))
    assert refusal(limits, lease(6, 12, 2), others) == {}
    told = refusal(limits, lease(0, 6, 2), others)
    assert (told["name"], told["used"], told["asked"]) == ("host_hours", 54, 12)


spans = st.tuples(st.integers(-20, 20), st.integers(1, 12), st.integers(1, 3)).map(lambda s: (s[0], s[0] + s[1], s[2]))
lists = st.lists(spans, max_size=6)
Span = tuple[int, int, int]


@given(lists, spans, st.integers(0, 12))
def test_hosts_at_once_by_a_count_of_every_half_hour(taken: list[Span], own: Span, value: int) -> None:
    moments = [own[0] + half / 2 for half in range(2 * (own[1] - own[0]))]
    levels = [sum(hosts for start, end, hosts in taken if start <= moment < end) + own[2] for moment in moments]
    found = refusal({Limit.HOSTS_AT_ONCE: value}, lease(*own), use(*taken))
    assert (found.get("used"), found.get("asked")) == (
        (max(levels) - own[2], own[2]) if max(levels) > value else (None, None)
    )


@given(lists, spans, st.integers(0, 60))
def test_host_hours_by_a_count_over_every_period(taken: list[Span], own: Span, value: int) -> None:
    length = DAYS // timedelta(hours=1)

    def within(begin: int, spans: list[Span]) -> int:
        return sum(hosts * max(0, min(end, begin + length) - max(start, begin)) for start, end, hosts in spans)

    others = [within(begin, taken) for begin in range(own[0] - length, own[1] + 1)]
    totals = [within(begin, [*taken, own]) for begin in range(own[0] - length, own[1] + 1)]
    found = refusal({Limit.HOST_HOURS: value}, lease(*own), use(*taken))
    assert bool(found) is (max(totals) > value)
    if found and max(others) <= value:
        assert found["used"] + found["asked"] == max(totals)  # type: ignore[operator]


@given(lists)
def test_the_most_that_is_used(taken: list[Span]) -> None:
    levels = [sum(hosts for start, end, hosts in taken if start <= moment < end) for moment in range(-20, 40)]
    window = Period(at(-20), at(40))
    assert most(Limit.HOSTS_AT_ONCE, use(*taken), window, DAYS) == max(levels)


@given(lists, st.integers(-10, 10), st.integers(1, 12))
@example([(5, 8, 1)], 0, 5)
def test_the_most_that_is_used_within_a_time(taken: list[Span], begin: int, hours: int) -> None:
    def level(moment: float) -> int:
        return sum(hosts for start, end, hosts in taken if start <= moment < end)

    window = Period(at(begin), at(begin + hours))
    assert most(Limit.HOSTS_AT_ONCE, use(*taken), window, DAYS) == max(map(level, range(begin, begin + hours)))
    touching = range(begin - 6, begin + hours + 1)
    summed = max(sum(level(start + hour) for hour in range(6)) for start in touching)
    assert most(Limit.HOST_HOURS, use(*taken), window, DAYS) == summed
