"""Many at once, on a real Postgres: nothing is promised twice, nothing hangs, nobody is refused without need."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Barrier, Thread, current_thread
from threading import Event as ThreadEvent
from typing import Any

import pytest
from psycopg.errors import ExclusionViolation
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from climate.context import Climate
from climate.domain.errors import Busy, ClimateError, Conflict, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.domain.status import HoldState
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import broken_leases, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from climate.store.leases.due_events import Cursor
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.lock_waits import await_blocked, blocked_or_over
from tests.service.lease_actions import START, claim, get, held, hosts_wanted, make, reservation, run_due

WRITERS = 16


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run all at the same moment, each in a thread of its own; what each returned or, if a ClimateError, raised."""
    barrier = Barrier(len(acts))

    def start(act: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return act()
        except ClimateError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return [done.result() for done in [pool.submit(start, act) for act in acts]]


def nothing_is_promised_twice(climate: Climate) -> bool:
    """By the leases themselves, not by the constraint."""
    taken: dict[int, list[tuple[datetime, datetime]]] = {}
    for lease in leases.listed(climate, ADMIN, Listing()):
        if lease.hold_state is not HoldState.RELEASED:
            for hold in (hold for r in lease.reservations for hold in r.holds):
                taken.setdefault(hold.host, []).append((hold.during.start, hold.during.end))
    in_order = [sorted(periods) for periods in taken.values()]
    return all(one[1] <= other[0] for periods in in_order for one, other in pairwise(periods))


@pytest.fixture
def clashes(engine: Engine) -> list[str]:
    """What the constraint, the last guard, has had to refuse."""
    seen: list[str] = []

    def note(context: Any) -> None:
        if isinstance(context.original_exception, ExclusionViolation):
            seen.append(str(context.original_exception))

    event.listen(engine, "handle_error", note)
    return seen


def kinds_of(results: Sequence[Any]) -> set[type]:
    return {type(result) for result in results}


def test_one_host_many_writers(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    make(climate, clock, hosts_wanted(7))
    results = at_once(*[lambda: make(climate, clock)] * WRITERS)
    assert len([one for one in results if isinstance(one, Lease)]) == 1
    assert kinds_of(results) == {Lease, NotEnoughHosts}
    assert nothing_is_promised_twice(climate)
    assert clashes == []


@pytest.mark.parametrize("wanted", [2, 3, 4])
def test_all_are_given_out_and_nobody_is_refused_without_need(climate: Climate, clock: Clock, wanted: int) -> None:
    results = at_once(*[lambda: make(climate, clock, hosts_wanted(wanted))] * 10)
    assert len([one for one in results if isinstance(one, Lease)]) == 8 // wanted
    assert kinds_of(results) == {Lease, NotEnoughHosts}
    assert nothing_is_promised_twice(climate)


def test_what_is_given_up_is_booked_again_without_end(climate: Climate, clock: Clock) -> None:
    def churn(wanted: int) -> list[type]:
        seen: list[type] = []
        for _ in range(12):
            try:
                lease = make(climate, clock, hosts_wanted(wanted))
                seen.append(Lease)
                leases.delete(climate, MEMBER, lease.id)
            except NotEnoughHosts:
                seen.append(NotEnoughHosts)
        return seen

    results = at_once(*[lambda wanted=wanted: churn(wanted) for wanted in (1, 2, 3, 4, 5, 8)])
    assert {kind for seen in results for kind in seen} <= {Lease, NotEnoughHosts}, results
    assert make(climate, clock, hosts_wanted(8))
    assert consistency_check.differences(climate) == []


def test_prolonging_against_booking(climate: Climate, clock: Clock) -> None:
    first = [make(climate, clock, hosts_wanted(2), start=1, hours=1) for _ in range(4)]
    end = first[0].period.end + timedelta(hours=1)
    longer = [lambda lease=lease: update.update(climate, MEMBER, lease.id, Changes(end=end)) for lease in first]
    results = at_once(*longer, *[lambda: make(climate, clock, hosts_wanted(3), start=2, hours=1)] * 4)
    assert kinds_of(results) <= {Lease, NotEnoughHosts}
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_pollers_share_the_work(climate: Climate, clock: Clock) -> None:
    made = [make(climate, clock, start=0.5 + 0.1 * place, hours=0.1) for place in range(30)]
    clock.forward(hours=5)

    def poll() -> int:
        count = 0
        while claimed := event_dispatch.claim_due(climate, "poller", limit=3):
            count += claimed
        return count

    results = at_once(*[poll] * 4)
    assert sum(results) == len(made)
    sent = at_once(*[lambda: event_dispatch.to_send(climate)] * 4)
    assert sorted(m.event_id for part in sent for m in part) == sorted(lease.event(START).id for lease in made)
    assert consistency_check.differences(climate) == []


def test_an_event_is_not_claimed_beside_a_rival_that_is_about_to_commit(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    make(climate, clock, start=0)
    reached, go_on = ThreadEvent(), ThreadEvent()

    def stop(_: object) -> None:
        if current_thread().name == "rival":
            reached.set()
            assert go_on.wait(60)

    rival = Thread(target=event_dispatch.claim_due, args=(climate, "rival"), name="rival")
    event.listen(engine, "commit", stop)
    try:
        with ThreadPoolExecutor(1) as pool:
            rival.start()
            assert reached.wait(60)
            claimed = pool.submit(event_dispatch.claim_due, climate, "poller")
            blocked_or_over(engine, claimed.done)
            go_on.set()
            assert claimed.result() == 0
    finally:
        go_on.set()
        rival.join()
        event.remove(engine, "commit", stop)
    assert consistency_check.differences(climate) == []


def test_what_a_rival_claims_between_look_and_lock_is_not_set_aside(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    made = [make(climate, clock, start=0) for _ in range(4)]
    rivals: list[int] = []
    is_rival = False

    def claim_first(*executed: Any) -> None:
        """Before each lock of the poller, a rival claims one of the events that the poller has looked at."""
        nonlocal is_rival
        if not is_rival and "SKIP LOCKED" in executed[2] and "unnest" in executed[2]:
            is_rival = True
            rivals.append(event_dispatch.claim_due(climate, "rival", limit=1))
            is_rival = False

    event.listen(engine, "before_cursor_execute", claim_first)
    try:
        own = event_dispatch.claim(climate, "poller", Cursor()).count
    finally:
        event.remove(engine, "before_cursor_execute", claim_first)
    assert broken_leases.listed(climate) == []
    assert (own, rivals) == (3, [1])
    assert len({message.event_id for message in event_dispatch.to_send(climate)}) == len(made)
    assert consistency_check.differences(climate) == []


def test_a_message_for_many_workers_is_run_by_one(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0)
    (message,) = claim(climate)
    by_itself = [lambda: events.run(climate, message.event_id, message.token, "worker")] * 4
    climate.cloud.watch = None  # type: ignore[attr-defined]  # other workers' transactions are open, and may be
    at_once(*by_itself)
    assert climate.cloud.effects["lend", reservation(lease), message.token] == 1  # type: ignore[attr-defined]
    assert climate.cloud.calls.count(("lend", reservation(lease))) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("turn", range(5))
def test_an_edit_against_the_claim(climate: Climate, clock: Clock, turn: int) -> None:
    lease = make(climate, clock, start=0)
    end = lease.period.end + timedelta(hours=1)
    acts = [
        lambda: event_dispatch.claim_due(climate, "poller"),
        lambda: update.update(climate, MEMBER, lease.id, Changes(end=end)),
    ]
    claimed, edited = at_once(*(acts if turn % 2 else acts[::-1]))[:: 1 if turn % 2 else -1]
    assert claimed in (0, 1)
    assert isinstance(edited, Lease), "no worker has begun"
    assert consistency_check.differences(climate) == []
    run_due(climate)
    assert get(climate, lease).period.end == end


def test_a_deletion_against_the_claim(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    claimed, deleted = at_once(
        lambda: event_dispatch.claim_due(climate, "poller"), lambda: leases.delete(climate, MEMBER, lease.id)
    )
    assert claimed in (0, 1)
    assert isinstance(deleted, Lease)
    assert deleted.gone, "no worker has begun"
    assert consistency_check.differences(climate) == []


def test_the_same_key_at_once_makes_one_lease(climate: Climate, clock: Clock) -> None:
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(2)])
    key = Key("k", "f")
    results = at_once(*[lambda: leases.create(climate, MEMBER, order, key)] * 8)
    assert kinds_of(results) <= {Lease, Busy}
    assert len({one.id for one in results if isinstance(one, Lease)}) == 1
    assert len(leases.listed(climate, MEMBER, Listing())) == 1


def test_a_host_is_removed_while_a_booking_waits_for_its_row(climate: Climate, clock: Clock, engine: Engine) -> None:
    with engine.connect() as other, ThreadPoolExecutor(1) as pool:
        with other.begin():
            other.execute(text("UPDATE hosts SET removed_at = now() WHERE id = 1"))
            booking = pool.submit(make, climate, clock, hosts_wanted(8))
            await_blocked(engine, booking.done)
        with pytest.raises(NotEnoughHosts):
            booking.result()


def test_an_active_lease_waits_for_its_own_hosts_rather_than_take_others(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=1)
    run_due(climate)
    longer = Changes(end=lease.period.end + timedelta(hours=1))
    with engine.connect() as other, ThreadPoolExecutor(1) as pool:
        with other.begin():
            other.execute(text("SELECT 1 FROM hosts WHERE id = :id FOR UPDATE"), {"id": min(held(lease))})
            prolonged = pool.submit(update.update, climate, MEMBER, lease.id, longer)
            blocked_or_over(engine, prolonged.done)
        assert held(prolonged.result()) == held(lease)


def test_a_stranger_neither_waits_for_a_lease_nor_holds_it_up(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock)
    with engine.begin() as other:
        other.execute(text("SELECT 1 FROM leases FOR UPDATE"))
        for verb in (
            lambda: leases.delete(climate, STRANGER, lease.id),
            lambda: update.update(climate, STRANGER, lease.id, Changes(name="x")),
        ):
            with pytest.raises(NotFound):
                verb()


def test_a_host_that_is_booked_is_not_removed(climate: Climate, clock: Clock) -> None:
    climate.cloud.watch = None  # type: ignore[attr-defined]  # the other's transaction may be open
    for _ in range(3):
        removed, made = at_once(
            lambda: inventory.remove(climate, ADMIN, "1"), lambda: make(climate, clock, hosts_wanted(8))
        )
        if isinstance(made, Lease):
            assert isinstance(removed, Conflict)
            leases.delete(climate, MEMBER, made.id)
        else:
            assert isinstance(made, NotEnoughHosts)
            assert removed is None
            return


INSERT = "INSERT INTO allocations (host, during, kind, state) VALUES ({}, {}, 'hold', 'held')"


@pytest.mark.parametrize(
    ("during", "host"),
    [
        ("tstzrange('2030-01-01 13:30Z', '2030-01-01 14:30Z')", "1"),
        ("tstzrange('2030-01-01 12:30Z', '2030-01-01 13:00:00.000001Z')", "1"),
        ("'empty'", "1"),
        ("tstzrange('2031-01-01Z', '2031-01-01Z')", "1"),
        ("tstzrange('2031-01-01Z', NULL)", "1"),
        ("tstzrange(NULL, '2031-01-01Z')", "1"),
        ("tstzrange('2031-01-01Z', 'infinity')", "1"),
        ("tstzrange('2031-01-01Z', '2032-01-01Z', '[]')", "1"),
        ("tstzrange('2031-01-01Z', '2032-01-01Z', '(]')", "1"),
        ("NULL", "1"),
        ("tstzrange('2031-01-01Z', '2032-01-01Z')", "NULL"),
        ("tstzrange('2031-01-01Z', '2032-01-01Z')", "99"),
    ],
)
def test_the_database_itself_refuses(climate: Climate, clock: Clock, engine: Engine, during: str, host: str) -> None:
    make(climate, clock, hosts_wanted(8))
    with engine.connect() as conn, pytest.raises(IntegrityError):
        conn.execute(text(INSERT.format(host, during)))
    back_to_back = "tstzrange('2030-01-01 15:00Z', '2030-01-01 16:00Z')"
    with engine.begin() as conn:
        conn.execute(text(INSERT.format(1, back_to_back)))


def test_what_is_released_may_not_become_valid_again_over_others(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    first = make(climate, clock, hosts_wanted(8))
    leases.delete(climate, MEMBER, first.id)
    make(climate, clock, hosts_wanted(8))
    with engine.connect() as conn, pytest.raises(IntegrityError):
        conn.execute(text("UPDATE allocations SET state = 'held'"))


@pytest.mark.parametrize("forbidden", ["UPDATE journal SET kind = 'x'", "DELETE FROM journal", "TRUNCATE journal"])
def test_the_journal_is_append_only(climate: Climate, clock: Clock, engine: Engine, forbidden: str) -> None:
    make(climate, clock)
    with engine.connect() as conn, pytest.raises(DBAPIError, match="append-only"):
        conn.execute(text(forbidden))
