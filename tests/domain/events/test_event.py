"""One event of a lease after each fact about it."""

from dataclasses import replace
from uuid import UUID

import pytest

from climate.domain import facts
from climate.domain.events.event import Event, EventFact, event_after
from climate.domain.events.event_share import Share
from climate.domain.status import DONE, ERROR, IN_PROGRESS, UNDONE, EventKind
from tests.domain.lease_factory import HOUR, NOON

ID = UUID(int=5)
EVENT = Event(ID, EventKind.START, NOON, NOON)
LATER = NOON + HOUR
CLAIMED = event_after(EVENT, facts.EventClaimed(ID, NOON, 7))


def test_a_claim_counts_an_attempt_and_keeps_the_first_time() -> None:
    assert (CLAIMED.status, CLAIMED.token, CLAIMED.attempts, CLAIMED.first_claimed_at) == (IN_PROGRESS, 7, 1, NOON)
    again = event_after(CLAIMED, facts.EventClaimed(ID, LATER, 8))
    assert (again.token, again.attempts, again.first_claimed_at, again.updated_at) == (8, 2, NOON, LATER)


def test_a_claim_that_is_taken_back_leaves_the_event_as_it_was() -> None:
    back = facts.EventClaimTakenBack(ID, LATER, EVENT.token, EVENT.first_claimed_at)
    assert event_after(CLAIMED, back) == replace(EVENT, updated_at=LATER)


@pytest.mark.parametrize(
    ("fact", "status", "outcome", "reason"),
    [
        (facts.EventFinished(ID, LATER, "LATE"), DONE, "LATE", None),
        (facts.EventSkipped(ID, LATER, "SKIPPED", "too late"), DONE, "SKIPPED", "too late"),
        (facts.EventFailed(ID, LATER, "FAILED", "broken"), ERROR, "FAILED", "broken"),
        (facts.WaitExpired(ID, LATER, "OK"), DONE, "OK", "nothing was free in time"),
        (facts.HoldExpired(ID, LATER, "OK"), DONE, "OK", "the hold was not confirmed in time"),
    ],
)
def test_an_end_has_its_outcome_and_reason(fact: EventFact, status: str, outcome: str, reason: str | None) -> None:
    over = event_after(CLAIMED, fact)
    assert (over.status, over.outcome, over.reason, over.updated_at) == (status, outcome, reason, LATER)


@pytest.mark.parametrize(("spent", "attempts"), [(True, 1), (False, 0)])
def test_an_event_that_is_put_back_counts_only_failed_attempts(spent: bool, attempts: int) -> None:
    waiting = event_after(CLAIMED, facts.EventPutBack(ID, NOON, LATER, "not yet", spent))
    assert (waiting.status, waiting.run_at, waiting.reason, waiting.attempts) == (UNDONE, LATER, "not yet", attempts)
    assert waiting.stage is IN_PROGRESS


def test_a_retry_keeps_the_shares_that_are_done() -> None:
    shares = (Share("a", 1, outcome="OK"), Share("b", 1, outcome="FAILED", reason="broken"))
    failed = replace(CLAIMED, shares=shares, status=ERROR, outcome="FAILED", reason="b: broken")
    anew = event_after(failed, facts.EventRequeued(ID, LATER))
    assert (anew.status, anew.run_at, anew.attempts, anew.reason) == (UNDONE, LATER, 0, None)
    assert anew.shares == shares[:1]
