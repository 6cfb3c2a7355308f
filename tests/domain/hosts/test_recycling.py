"""How long servers may go on after the lease of their host."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain.hosts.pools import DeadlineAction, HostPlace, OnEnd, Pool
from climate.domain.hosts.recycling import NextAction, RecyclingHost, next_action
from tests.domain.lease_factory import HOUR, NOON

LEAD = timedelta(minutes=2)
TIMES = st.none() | st.timedeltas(-HOUR, 9 * HOUR).map(lambda after: NOON + after)


def place(until: datetime | None = None) -> HostPlace:
    return HostPlace(1, UUID(int=1), "h1", Pool.RECYCLING, NOON, until=until)


def stay(on_end: OnEnd = OnEnd.RECYCLE, until: datetime | None = None, **more: object) -> RecyclingHost:
    return RecyclingHost(place(until), on_end, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (stay(), None),
        (stay(needed_at=NOON + HOUR), NOON + HOUR - LEAD),
        (stay(until=NOON + HOUR), NOON + HOUR),
        (stay(until=NOON + HOUR, needed_at=NOON + HOUR), NOON + HOUR - LEAD),
        (stay(OnEnd.TERMINATE, NOON + HOUR, over=False), NOON + HOUR),
        (stay(OnEnd.TERMINATE, NOON + HOUR, over=True), NOON),
    ],
)
def test_deadline(one: RecyclingHost, expected: datetime | None) -> None:
    assert one.deadline(LEAD) == expected


@pytest.mark.parametrize(
    ("one", "later", "expected"),
    [
        (stay(), 99 * HOUR, NextAction.WAIT),
        (stay(needed_at=NOON + HOUR), HOUR - LEAD, NextAction.DELETE),
        (stay(needed_at=NOON + HOUR, policy=DeadlineAction.MOVE), HOUR - LEAD, NextAction.MOVE),
        (stay(OnEnd.RELEASE, needed_at=NOON + HOUR), HOUR - LEAD, NextAction.REPLACE),
        (stay(OnEnd.RELEASE, needed_at=NOON + HOUR, policy=DeadlineAction.MOVE), HOUR - LEAD, NextAction.MOVE),
        (stay(OnEnd.RELEASE, needed_at=NOON + HOUR), timedelta(0), NextAction.WAIT),
        (stay(OnEnd.RELEASE), timedelta(0), NextAction.RELEASE),
        (stay(OnEnd.RELEASE, over=False), timedelta(0), NextAction.WAIT),
        (stay(OnEnd.TERMINATE, policy=DeadlineAction.MOVE), timedelta(0), NextAction.DELETE),
        (stay(OnEnd.TERMINATE, NOON + HOUR, over=False), HOUR - LEAD, NextAction.WAIT),
    ],
)
def test_what_is_done(one: RecyclingHost, later: timedelta, expected: NextAction) -> None:
    assert next_action(one, 1, LEAD, NOON + later) is expected


STAYS = st.builds(
    RecyclingHost,
    place=TIMES.map(place),
    on_end=st.sampled_from(OnEnd),
    policy=st.sampled_from(DeadlineAction),
    over=st.booleans(),
    needed_at=TIMES,
)


@given(STAYS, st.integers(0, 2), st.timedeltas(-HOUR, 9 * HOUR))
def test_nothing_is_deleted_before_the_deadline_and_an_empty_host_never_waits(
    one: RecyclingHost, servers: int, later: timedelta
) -> None:
    now = NOON + later
    done, deadline = next_action(one, servers, LEAD, now), one.deadline(LEAD)
    assert (done is NextAction.LEAVE) == (servers == 0)
    if done in (NextAction.DELETE, NextAction.MOVE, NextAction.REPLACE):
        assert deadline is not None
        assert deadline <= now
    if done is NextAction.RELEASE:
        assert one.needed_at is None
    if servers and deadline and deadline <= now:
        assert done in (NextAction.DELETE, NextAction.MOVE, NextAction.REPLACE)
