"""Leases that are held: promised with an expiry, confirmed once or gone, and never started before."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Event as Signal
from typing import Any

import pytest
from sqlalchemy import Engine, event

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, LimitExceeded, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.status import HoldState, LeaseStatus
from climate.service.admission import limits
from climate.service.events import event_dispatch
from climate.service.host_operations import failures
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import confirmation, healing, lease_servers, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from climate.store.leases import event_claims as claims
from climate.store.leases.event_claims import Limits
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.lock_waits import await_blocked
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.service.lease_actions import (
    EXPIRE,
    START,
    claim,
    get,
    held,
    hosts_wanted,
    kinds,
    lost,
    make,
    reservation,
    rows,
    run,
    run_due,
)

HOLD = timedelta(minutes=10)


def hold(
    climate: Climate, clock: Clock, *wanted: dict[str, Any], start: float = 0, length: timedelta = HOLD, **more: Any
) -> Lease:
    """A held lease of the member's, two hours long, `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    end = begin + timedelta(hours=2)
    order = LeaseRequest("l", begin, end, None, wanted or [hosts_wanted()], hold=length)
    return leases.create(climate, MEMBER, order, **more)


def story_is_whole(climate: Climate) -> None:
    """The rows are what the facts say, and they can be made anew from the facts alone."""
    assert consistency_check.differences(climate) == []
    before = leases.listed(climate, ADMIN, Listing())
    rebuild(climate)
    assert consistency_check.differences(climate) == []
    assert leases.listed(climate, ADMIN, Listing()) == before


def test_what_is_held_is_kept_and_nothing_of_it_starts(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = hold(climate, clock, hosts_wanted(8))
    assert (lease.status, lease.hold_until) == (LeaseStatus.HELD, clock.time + HOLD)
    assert lease.hold_state is HoldState.HELD
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, start=0)
    clock.forward(minutes=9, seconds=59)
    assert run_due(climate) == 0, "the start of a held lease was claimed"
    assert not [call for call in cloud.calls if call[0] == "lend"]
    story_is_whole(climate)


def test_a_confirmed_hold_starts_at_once(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = hold(climate, clock, hosts_wanted(2))
    clock.forward(minutes=5)
    confirmed = confirmation.confirm(climate, MEMBER, lease.id, "k")
    assert (confirmed.status, confirmed.hold_until, held(confirmed)) == (LeaseStatus.PENDING, None, held(lease))
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert len(cloud.pools()[reservation(lease)]) == 2
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE, "the hold expired after its confirmation"
    assert kinds(climate, lease)[:2] == ["LeaseCreated", "HoldConfirmed"]
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    story_is_whole(climate)


def test_a_hold_that_nobody_confirms_is_gone_and_its_hosts_are_free(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock, hosts_wanted(8), start=1)
    clock.forward(minutes=10)
    assert run_due(climate) == 1
    with pytest.raises(NotFound):
        get(climate, lease)
    assert kinds(climate, lease) == [
        *("LeaseCreated", "EventClaimed", "HoldExpired", "EventSkipped", "EventSkipped", "LeaseDeleted")
    ]
    assert make(climate, clock, hosts_wanted(8), start=1)
    with pytest.raises(Conflict, match="expired at 2030-01-01 12:10:00 UTC"):
        confirmation.confirm(climate, MEMBER, lease.id)
    clock.forward(hours=5)
    run_due(climate)
    story_is_whole(climate)


def test_its_time_ends_the_hold_even_while_no_poller_lives(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = hold(climate, clock)
    clock.forward(seconds=HOLD.total_seconds())
    before = rows(engine)
    with pytest.raises(Conflict, match="expired"):
        confirmation.confirm(climate, MEMBER, lease.id)
    assert rows(engine) == before, "a refusal left something behind"
    claim(climate)
    with pytest.raises(Conflict, match="expired"):
        confirmation.confirm(climate, MEMBER, lease.id)


def test_the_end_of_a_hold_survives_its_worker(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock)
    clock.forward(minutes=10)
    (message,) = claim(climate)
    assert message.event_id == lease.event(EXPIRE).id
    with climate.engine.begin() as conn:
        assert claims.start(conn, message, "worker", clock.time, Limits(timedelta(seconds=15), timedelta(seconds=60)))
    lost(climate, clock)
    assert get(climate, lease).status is LeaseStatus.HELD
    with pytest.raises(Conflict, match="expired"):
        confirmation.confirm(climate, MEMBER, lease.id)
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)


def test_a_second_confirmation_under_the_same_key_has_the_same_answer(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock, start=1)
    first = confirmation.confirm(climate, MEMBER, lease.id, "k")
    assert confirmation.confirm(climate, MEMBER, lease.id, "k") == first
    with pytest.raises(Conflict, match="under another key"):
        confirmation.confirm(climate, MEMBER, lease.id, "other")
    update.update(climate, MEMBER, lease.id, Changes(name="renamed"))
    leases.delete(climate, MEMBER, lease.id)
    assert confirmation.confirm(climate, MEMBER, lease.id, "k") == first, (
        "what has become of it since changes the answer"
    )
    assert kinds(climate, lease).count("HoldConfirmed") == 1


def test_a_release_gives_the_hosts_back_at_once(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock, hosts_wanted(8))
    assert leases.delete(climate, MEMBER, lease.id).gone
    assert make(climate, clock, hosts_wanted(8), start=0)
    with pytest.raises(NotFound):
        confirmation.confirm(climate, MEMBER, lease.id)
    clock.forward(minutes=20)
    run_due(climate)
    assert "HoldExpired" not in kinds(climate, lease)
    story_is_whole(climate)


def test_what_was_never_held_cannot_be_confirmed(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    with pytest.raises(Conflict, match="was never held"):
        confirmation.confirm(climate, MEMBER, lease.id)
    leases.delete(climate, MEMBER, lease.id)
    with pytest.raises(NotFound):
        confirmation.confirm(climate, MEMBER, lease.id)


def test_a_hold_is_its_projects_own(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock)
    with pytest.raises(NotFound):
        confirmation.confirm(climate, STRANGER, lease.id)
    confirmation.confirm(climate, MEMBER, lease.id, "k")
    with pytest.raises(NotFound):
        confirmation.confirm(climate, STRANGER, lease.id, "k")


def test_a_held_lease_is_renamed_but_not_changed(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = hold(climate, clock, start=1)
    assert update.update(climate, MEMBER, lease.id, Changes(name="n")).status is LeaseStatus.HELD
    before = rows(engine)
    for wish in (
        Changes(end=lease.period.end + timedelta(hours=1)),
        Changes(start_now=True),
        Changes(reservations=[{"id": reservation(lease), "max": 2}]),
    ):
        with pytest.raises(Conflict, match="confirm it before"):
            update.update(climate, MEMBER, lease.id, wish)
    assert rows(engine) == before


def test_a_held_lease_of_a_host_that_fails_gets_another(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = hold(climate, clock, start=0.5)
    (host,) = held(lease)
    failures.fail(climate, ADMIN, str(host), "smoke")
    healing.heal_all(climate)
    after = get(climate, lease)
    assert (after.status, len(held(after)), host in held(after)) == (LeaseStatus.HELD, 1, False)
    assert confirmation.confirm(climate, MEMBER, lease.id).status is LeaseStatus.PENDING


def test_a_sleeping_server_of_a_hold_that_expires_is_deleted(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.boot("project", status="RESERVED", server_id="0f4e2c6e-6b4c-4a53-8ef5-d7f1e1a3a1b2")
    wanted = {"resource_type": "virtual:instance", "resource_id": "0f4e2c6e-6b4c-4a53-8ef5-d7f1e1a3a1b2"}
    lease = hold(climate, clock, wanted, start=1)
    clock.forward(minutes=10)
    (message,) = claim(climate)
    run(climate, message)
    assert get(climate, lease).status is LeaseStatus.DELETING
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)
    assert cloud.server("0f4e2c6e-6b4c-4a53-8ef5-d7f1e1a3a1b2") is None
    assert lease_servers.sweep(climate) == []
    story_is_whole(climate)


def test_how_long_and_how_many(climate: Climate, clock: Clock, engine: Engine) -> None:
    before = rows(engine)
    for length in (timedelta(seconds=601), timedelta(0)):
        with pytest.raises(InvalidInput, match="between 1 and 600"):
            hold(climate, clock, length=length)
    assert rows(engine) == before
    few = replace(climate, settings=replace(climate.settings, holds_per_project=2))
    first, _ = hold(few, clock, start=1), hold(few, clock, start=1)
    with pytest.raises(LimitExceeded) as refused:
        hold(few, clock, start=1)
    assert refused.value.details == {"limit": {"name": "held_leases", "value": 2, "used": 2, "asked": 1}}
    make(few, clock)
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=2), None, [hosts_wanted()], hold=HOLD)
    assert leases.create(few, replace(ADMIN, project_id=MEMBER.project_id), order).held
    confirmation.confirm(few, MEMBER, first.id)
    with pytest.raises(LimitExceeded):
        hold(few, clock, start=1)
    limits.put(few, ADMIN, MEMBER.project_id, {Limit.HELD_LEASES: 3})
    assert hold(few, clock, start=1).held
    used = {one.limit: (one.value, one.used) for one in limits.of(few, MEMBER)}
    assert used[Limit.HELD_LEASES] == (3, 3)


def test_holds_count_in_the_other_limits(climate: Climate, clock: Clock) -> None:
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 3})
    lease = hold(climate, clock, hosts_wanted(2), start=1)
    with pytest.raises(LimitExceeded, match="hosts_at_once"):
        make(climate, clock, hosts_wanted(2))
    clock.forward(minutes=10)
    run_due(climate)
    assert make(climate, clock, hosts_wanted(2), start=1)
    assert lease.held


def test_members_that_hold_at_once_stay_within_the_number(climate: Climate, clock: Clock) -> None:
    few = replace(climate, settings=replace(climate.settings, holds_per_project=2))
    results = at_once(*[lambda: hold(few, clock, start=1)] * 6)
    assert sorted(type(one).__name__ for one in results) == ["Lease"] * 2 + ["LimitExceeded"] * 4


def test_a_repeated_request_with_a_key_makes_one_hold(climate: Climate, clock: Clock) -> None:
    first = hold(climate, clock, key=Key("k", "f"))
    confirmation.confirm(climate, MEMBER, first.id)
    assert hold(climate, clock, key=Key("k", "f")) == first
    assert len(leases.listed(climate, MEMBER, Listing())) == 1
    assert hold(climate, clock, dry_run=True).held
    assert len(leases.listed(climate, MEMBER, Listing())) == 1


# Races.


def settled(climate: Climate, lease: Lease) -> tuple[bool, bool]:
    """Return (confirmed, expired) of the lease: exactly one of them is true."""
    said = kinds(climate, lease)
    assert said.count("HoldConfirmed") <= 1
    return "HoldConfirmed" in said, "HoldExpired" in said


@pytest.mark.parametrize("turn", range(4))
def test_the_confirmation_against_the_expiry_has_one_winner(climate: Climate, clock: Clock, turn: int) -> None:
    """Two clocks: he who confirms reads it just before the expiry, the poller just after it."""
    lease = hold(climate, clock)
    until = clock.time + HOLD
    early = replace(climate, now=lambda conn: until - timedelta(microseconds=1))
    clock.time = until
    acts: list[Callable[[], Any]] = [
        lambda: confirmation.confirm(early, MEMBER, lease.id, "k"),
        lambda: event_dispatch.claim_due(climate, "poller"),
        lambda: confirmation.confirm(early, MEMBER, lease.id, "k"),
    ]
    results = at_once(*(acts if turn % 2 else acts[::-1]))
    answers = [one for one in results if not isinstance(one, int)]
    run_due(climate)
    confirmed, expired = settled(climate, lease)
    assert confirmed is not expired
    if confirmed:
        assert answers[0] == answers[1]
        assert get(climate, lease).status is LeaseStatus.ACTIVE
    else:
        assert {type(one) for one in answers} == {Conflict}
        with pytest.raises(NotFound):
            get(climate, lease)
    story_is_whole(climate)
    assert nothing_is_promised_twice(climate)


def held_up(engine: Engine, statement: str, entered: Signal, go: Signal) -> None:
    """The first statement that begins so waits, with the locks of its transaction, until it may go on."""

    def wait(conn: Any, cursor: Any, said: str, *rest: Any) -> None:
        if said.startswith(statement) and not entered.is_set():
            entered.set()
            assert go.wait(120)

    event.listen(engine, "before_cursor_execute", wait)


def test_a_poller_passes_over_a_hold_that_is_being_confirmed(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = hold(climate, clock)
    until = clock.time + HOLD
    early = replace(climate, now=lambda conn: until - timedelta(microseconds=1))
    clock.time = until
    entered, go = Signal(), Signal()
    held_up(engine, "WITH leases_saved", entered, go)

    def poll() -> int:
        assert entered.wait(120)
        try:
            return event_dispatch.claim_due(climate, "poller")
        finally:
            go.set()

    confirmed, claimed = at_once(lambda: confirmation.confirm(early, MEMBER, lease.id), poll)
    assert (type(confirmed), claimed) == (Lease, 0)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert settled(climate, lease) == (True, False)


def test_a_confirmation_waits_for_a_claim_and_is_refused(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = hold(climate, clock)
    until = clock.time + HOLD
    early = replace(climate, now=lambda conn: until - timedelta(microseconds=1))
    clock.time = until
    entered, go = Signal(), Signal()
    held_up(engine, "WITH leases_saved", entered, go)

    def confirm() -> Lease:
        assert entered.wait(120)
        return confirmation.confirm(early, MEMBER, lease.id)

    def look() -> None:
        assert entered.wait(120)
        await_blocked(engine, lambda: False)
        go.set()

    claimed, refused, _ = at_once(lambda: event_dispatch.claim_due(climate, "poller"), confirm, look)
    assert (claimed, type(refused)) == (1, Conflict)
    assert "expired at" in str(refused), "refused by the journal's key only"
    run_due(climate)
    assert settled(climate, lease) == (False, True)


def test_the_release_against_the_confirmation(climate: Climate, clock: Clock) -> None:
    for _ in range(4):
        lease = hold(climate, clock, start=1)
        confirmed, released = at_once(
            lambda lease=lease: confirmation.confirm(climate, MEMBER, lease.id),
            lambda lease=lease: leases.delete(climate, MEMBER, lease.id),
        )
        assert released.gone, "a lease that has not started is gone at once, confirmed or not"
        assert isinstance(confirmed, Lease | NotFound)
        assert settled(climate, lease)[0] is isinstance(confirmed, Lease)
    story_is_whole(climate)


def test_the_release_against_the_expiry(climate: Climate, clock: Clock) -> None:
    lease = hold(climate, clock)
    clock.forward(minutes=10)
    claimed, released = at_once(
        lambda: event_dispatch.claim_due(climate, "poller"), lambda: leases.delete(climate, MEMBER, lease.id)
    )
    assert claimed in (0, 1)
    assert isinstance(released, Lease), "no worker has begun to end the hold"
    run_due(climate)
    assert settled(climate, lease) == (False, False)
    story_is_whole(climate)


def test_as_of_any_moment(climate: Climate, clock: Clock) -> None:
    made = clock.time
    lease = hold(climate, clock, start=1)
    clock.forward(minutes=5)
    confirmation.confirm(climate, MEMBER, lease.id)
    clock.forward(minutes=60)
    run_due(climate)
    then = [leases.get(climate, MEMBER, lease.id, at=made + timedelta(minutes=m)).status for m in (4, 6, 66)]
    assert then == [LeaseStatus.HELD, LeaseStatus.PENDING, LeaseStatus.ACTIVE]
    assert get(climate, lease).event(START).outcome == "LATE"
