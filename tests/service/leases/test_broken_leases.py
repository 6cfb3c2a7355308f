"""One lease whose rows are broken keeps no other from its events, and is mended from its journal."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import EventKind, LeaseStatus
from climate.service.events import event_dispatch
from climate.service.journal import consistency_check
from climate.service.leases import broken_leases, leases
from climate.store import metrics
from climate.store.leases.due_events import Cursor
from tests.conftest import ADMIN, Clock
from tests.service.lease_actions import get, hosts_wanted, make, run, run_due
from tests.service.storage_factory import pool, storage_wanted

PUT_BACK_BY_HAND = "UPDATE events SET status = 'UNDONE' WHERE lease_id = :lease_id AND kind = 'start_lease'"
OF_A_NEWER_RELEASE = """
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, attempts, token)
    VALUES (gen_random_uuid(), :lease_id, 70, 'praise_lease', now(), now(), 'UNDONE', 0, 0)
"""

Break = Callable[[Lease, str], None]


@pytest.fixture
def spoil(engine: Engine) -> Break:
    def act(lease: Lease, statement: str) -> None:
        with engine.begin() as conn:
            conn.execute(text(statement), {"lease_id": lease.id})

    return act


def _aside(climate: Climate) -> list[object]:
    return [one.lease_id for one in broken_leases.listed(climate)]


def test_an_event_that_was_put_back_by_hand_keeps_no_other_from_being_claimed(
    climate: Climate, clock: Clock, spoil: Break
) -> None:
    bad = make(climate, clock, start=0)
    event_dispatch.claim_due(climate, "poller")
    (message,) = event_dispatch.to_send(climate)
    spoil(bad, PUT_BACK_BY_HAND)
    good = [make(climate, clock, start=0) for _ in range(3)]
    assert event_dispatch.claim(climate, "poller", Cursor()).count == 3
    assert _aside(climate) == [bad.id]
    assert event_dispatch.claim(climate, "poller", Cursor()).count == 0, "and is not looked at again"
    with climate.engine.connect() as conn:
        assert metrics.read(conn, clock.time).set_aside == 1
    run_due(climate)
    assert {get(climate, lease).event(EventKind.START).status for lease in good} == {"DONE"}
    broken_leases.repair_lease(climate, bad.id, "events")
    assert (consistency_check.differences(climate), _aside(climate)) == ([], [])
    run(climate, message)
    assert get(climate, bad).status is LeaseStatus.ACTIVE, "the worker's claim has stayed"


def test_an_event_of_a_newer_release_keeps_no_other_from_being_claimed(
    climate: Climate, clock: Clock, spoil: Break
) -> None:
    bad, good = make(climate, clock, start=1), make(climate, clock, start=1)
    spoil(bad, OF_A_NEWER_RELEASE)
    clock.forward(hours=1)
    assert event_dispatch.claim(climate, "poller", Cursor()).count == 1
    (one,) = broken_leases.listed(climate)
    assert one.lease_id == bad.id
    assert "praise_lease" in one.reason
    broken_leases.repair_lease(climate, bad.id, "events")
    run_due(climate)
    assert {get(climate, lease).status for lease in (bad, good)} == {LeaseStatus.ACTIVE}
    assert consistency_check.differences(climate) == []


def test_a_broken_lease_keeps_no_other_from_being_rescued(climate: Climate, clock: Clock, spoil: Break) -> None:
    bad, good = make(climate, clock, start=0), make(climate, clock, start=0)
    event_dispatch.claim_due(climate, "poller")
    climate.cloud.failures["lend"] = ZeroDivisionError()  # type: ignore[attr-defined]
    for message in event_dispatch.to_send(climate):
        with pytest.raises(ZeroDivisionError):
            run(climate, message)
    climate.cloud.failures.clear()  # type: ignore[attr-defined]
    spoil(bad, OF_A_NEWER_RELEASE)
    clock.forward(seconds=climate.settings.claim_seconds + 1)
    assert event_dispatch.rescue(climate, "poller") == 1
    assert _aside(climate) == [bad.id]
    assert event_dispatch.rescue(climate, "poller") == 0
    broken_leases.repair_lease(climate, bad.id, "events")
    assert event_dispatch.rescue(climate, "poller") == 1
    clock.forward(seconds=10)
    run_due(climate)
    assert {get(climate, lease).status for lease in (bad, good)} == {LeaseStatus.ACTIVE}


def test_a_claim_that_is_missing_is_opened_again(climate: Climate, clock: Clock, spoil: Break) -> None:
    lease = make(climate, clock, start=0)
    event_dispatch.claim_due(climate, "poller")
    spoil(lease, "DELETE FROM claims USING events e WHERE e.id = event_id AND e.lease_id = :lease_id")
    assert event_dispatch.to_send(climate) == []
    broken_leases.repair_lease(climate, lease.id, "events")
    (message,) = event_dispatch.to_send(climate)
    run(climate, message)
    assert leases.get(climate, ADMIN, lease.id).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize("lost", ["", " AND c.token = e.token"], ids=["all", "one"])
def test_the_claims_of_a_mixed_lease_are_opened_again_for_each_type(
    climate: Climate, clock: Clock, spoil: Break, lost: str
) -> None:
    pool(climate, 10)
    lease = make(climate, clock, hosts_wanted(1), storage_wanted(10), start=0)
    event_dispatch.claim_due(climate, "poller")
    known = event_dispatch.to_send(climate)
    assert [message.queue for message in known] == ["events.physical:host", "events.storage:pool"]
    spoil(lease, f"DELETE FROM claims c USING events e WHERE e.id = c.event_id AND e.lease_id = :lease_id{lost}")
    broken_leases.repair_lease(climate, lease.id, "events")
    opened = event_dispatch.to_send(climate)
    assert opened == (known[:1] if lost else known)
    assert [message.queue for message in opened] == [message.queue for message in known[: len(opened)]]
    for message in known:
        run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("shares", ["{}", "null", "7"])
def test_an_event_whose_shares_are_none_keeps_no_other_from_being_rescued(
    climate: Climate, clock: Clock, spoil: Break, shares: str
) -> None:
    pool(climate, 10)
    bad = make(climate, clock, start=0)
    good = make(climate, clock, hosts_wanted(1), storage_wanted(10), start=0)
    event_dispatch.claim_due(climate, "poller")
    spoil(bad, f"UPDATE events SET shares = '{shares}' WHERE lease_id = :lease_id")
    clock.time = good.period.end
    event_dispatch.rescue(climate, "poller")
    assert get(climate, good).event(EventKind.START).outcome == "MISSED"
