"""A hold is confirmed before it expires, or it ends."""

from datetime import timedelta

import pytest

from climate.domain.errors import Conflict, IllegalMove, InvalidInput
from climate.domain.events import event_transitions
from climate.domain.planning import holds
from climate.domain.status import UNDONE, EventKind, LeaseStatus
from tests.domain.lease_factory import HOUR, NOON, PERIOD, after, claimed, lease

HELD_UNTIL = NOON + timedelta(minutes=10)
LONGEST = timedelta(minutes=10)


def test_a_hold_is_confirmed_before_its_expiry_or_never() -> None:
    known = lease(hold_until=HELD_UNTIL)
    with pytest.raises(Conflict, match="expired at 2030-01-01 12:10:00 UTC"):
        holds.confirm(known, "", HELD_UNTIL)
    begun = claimed(known, EventKind.EXPIRE, HELD_UNTIL)
    assert begun.status is LeaseStatus.HELD
    back = after(begun, event_transitions.retry_or_fail(begun, begun.events[0].id, HELD_UNTIL, "worker lost", 0.5))
    for late in (begun, back):  # an hour early: the clock of the database was put back
        with pytest.raises(Conflict, match="expired"):
            holds.confirm(late, "", HELD_UNTIL - HOUR)
    with pytest.raises(IllegalMove, match="cannot be given up"):
        event_transitions.fail(begun, begun.events[0].id, HELD_UNTIL, "broken")
    with pytest.raises(Conflict, match="is PENDING, not HELD"):
        holds.confirm(lease(), "", NOON)
    confirmed = after(known, holds.confirm(known, "key", HELD_UNTIL - timedelta(seconds=1)))
    assert (confirmed.status, confirmed.hold_until, confirmed.reason) == (LeaseStatus.PENDING, None, None)


def test_the_end_of_a_hold_is_tried_without_end() -> None:
    known = lease(hold_until=HELD_UNTIL)
    for token in range(1, 100):
        known = claimed(known, EventKind.EXPIRE, HELD_UNTIL, token)
        known = after(known, event_transitions.retry_or_fail(known, known.events[0].id, HELD_UNTIL, "worker lost", 0.5))
    assert known.events[0].status is UNDONE


@pytest.mark.parametrize("seconds", [0, -1, 601])
def test_a_hold_that_is_too_long_or_none_at_all_is_refused(seconds: int) -> None:
    with pytest.raises(InvalidInput, match=f"hold_seconds is {seconds}: it must be between 1 and 600"):
        holds.check_length(timedelta(seconds=seconds), LONGEST)


def test_holds_can_be_switched_off() -> None:
    holds.check_length(None, timedelta(0))
    with pytest.raises(InvalidInput, match="CLIMATE_HOLD_SECONDS is 0"):
        holds.check_length(timedelta(seconds=1), timedelta(0))


def test_a_hold_ends_before_its_lease() -> None:
    assert holds.hold_until(None, PERIOD, NOON) is None
    assert holds.hold_until(3 * HOUR - timedelta(seconds=1), PERIOD, NOON) == PERIOD.end - timedelta(seconds=1)
    with pytest.raises(InvalidInput, match="beyond the end of the lease, 2030-01-01 15:00:00 UTC"):
        holds.hold_until(3 * HOUR, PERIOD, NOON)
