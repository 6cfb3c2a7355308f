"""The journal as a stream: nothing is lost, whatever the order in which transactions commit."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from threading import Barrier, Event, Thread
from uuid import uuid4

import pytest
from sqlalchemy import Connection, Engine, text

from climate.context import Climate
from climate.domain.policy import Caller
from climate.service.host_operations import failures
from climate.service.hosts import reservable
from climate.service.journal import changes
from climate.service.journal.changes import Change, Follower, Topic
from climate.service.leases import leases
from climate.store.journal import change_feed as rows
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import make

APPEND = text("""
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    VALUES (:stream, 1, 'Tried', '{}', '{}', '') RETURNING position
""")


def append(conn: Connection) -> int:
    return int(conn.execute(APPEND, {"stream": uuid4()}).scalar_one())


def positions(found: list[Change]) -> list[int]:
    return [change.position for change in found]


@pytest.fixture
def follower(climate: Climate) -> Follower:
    made = Follower(climate)
    assert made.read() == []
    assert made.position is not None
    return made


@pytest.fixture
def begun(engine: Engine) -> Iterator[Callable[[], Connection]]:
    """Connections with a transaction each."""
    with ExitStack() as stack:

        def begin() -> Connection:
            conn = stack.enter_context(engine.connect())
            conn.begin()
            return conn

        yield begin


def test_changes_wait_for_an_earlier_position_that_commits_later(
    follower: Follower, begun: Callable[[], Connection]
) -> None:
    slow, quick = begun(), begun()
    first, second, third = append(slow), append(quick), append(quick)
    quick.commit()
    assert follower.read() == [] == follower.read()
    slow.commit()
    assert positions(follower.read()) == [first, second, third]
    assert follower.read() == []


def test_a_position_that_was_rolled_back_holds_up_nothing(follower: Follower, begun: Callable[[], Connection]) -> None:
    failing, quick = begun(), begun()
    append(failing)
    second = append(quick)
    failing.rollback()
    quick.commit()
    assert positions(follower.read()) == [second]


def test_a_later_transaction_does_not_hold_up_the_gap_before_it(
    follower: Follower, begun: Callable[[], Connection]
) -> None:
    """Else a busy journal, in which somebody is always appending, would never be delivered."""
    failing, quick, later = begun(), begun(), begun()
    append(failing)
    second = append(quick)
    quick.commit()
    assert follower.read() == []
    append(later)
    failing.rollback()
    assert positions(follower.read()) == [second]


def test_a_reader_begins_after_the_transactions_that_are_under_way(
    climate: Climate, begun: Callable[[], Connection]
) -> None:
    slow = begun()
    append(slow)
    follower = Follower(climate)
    assert (follower.read(), follower.position) == ([], None)
    slow.commit()
    follower.read()
    assert follower.position == rows.last_taken(slow)


def test_readers_and_backups_do_not_hold_up_anything(follower: Follower, begun: Callable[[], Connection]) -> None:
    backup, failing, quick = begun(), begun(), begun()
    backup.execute(text("SELECT count(*) FROM journal"))
    append(failing)
    failing.rollback()
    second = append(quick)
    quick.commit()
    assert positions(follower.read()) == [second]


def test_no_change_is_lost_or_repeated_beside_concurrent_transactions(climate: Climate, engine: Engine) -> None:
    """Six writers with one or several facts in a transaction, a fifth of them rolled back, and a reader beside."""
    follower = Follower(climate)
    follower.read()
    written: list[int] = []
    begin, done = Barrier(7), Event()

    def write(seed: int) -> None:
        chance = Random(seed)
        begin.wait()
        for _ in range(60):
            with engine.connect() as conn:
                transaction = conn.begin()
                mine = [append(conn) for _ in range(chance.randint(1, 3))]
                conn.execute(text("SELECT pg_sleep(:seconds)"), {"seconds": chance.random() / 200})
                if chance.random() < 0.2:
                    transaction.rollback()
                else:
                    transaction.commit()
                    written.extend(mine)

    seen: list[int] = []

    def read() -> None:
        begin.wait()
        while not done.is_set():
            seen.extend(positions(follower.read()))

    writers = [Thread(target=write, args=(seed,)) for seed in range(6)]
    reader = Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    for _ in range(3):
        seen.extend(positions(follower.read()))
    assert seen == sorted(written)


def test_what_was_missed_is_read_up_to_what_is_delivered(climate: Climate, follower: Follower, engine: Engine) -> None:
    with engine.begin() as conn:
        first, second = append(conn), append(conn)
    follower.read()
    with engine.begin() as conn:
        third = append(conn)
    known = follower.missed(first)
    assert known is not None
    assert positions(known) == [second], "the third comes with the next read"
    assert follower.missed(third) == []
    assert follower.missed(third + 1000) is None, "a position of another database"


def test_who_learns_what(climate: Climate, clock: Clock, follower: Follower) -> None:
    lease = make(climate, clock)
    failures.fail(climate, ADMIN, "8", "smoke")
    reservable.open_to_promises(climate, ADMIN, "7", False, "old")
    found = follower.read()
    everything = changes.notices(found, ADMIN)
    assert {one.topic for one in everything} == {Topic.LEASE, Topic.HOST}
    own = changes.notices(found, MEMBER)
    assert [one.topic for one in own] == [Topic.LEASE, Topic.CALENDAR]
    assert (own[0].lease_id, own[0].kind, own[1].host_id, own[1].kind) == (lease.id, "LeaseCreated", None, None)
    (other,) = changes.notices(found, STRANGER)
    assert other == changes.Notice(found[-1].position, Topic.CALENDAR)


def test_changes_of_one_lease(climate: Climate, clock: Clock, follower: Follower) -> None:
    first, second = make(climate, clock), make(climate, clock, start=9)
    found = follower.read()
    assert {one.lease_id for one in changes.notices(found, MEMBER, second.id)} == {second.id}
    assert changes.notices(found, STRANGER, first.id) == []
    leases.delete(climate, MEMBER, first.id)
    assert changes.notices(follower.read(), Caller("u", "project"), first.id)[0].topic is Topic.LEASE


def test_position_of_a_reader_has_all_changes_before_it(
    climate: Climate, follower: Follower, begun: Callable[[], Connection]
) -> None:
    writer = begun()
    taken = append(writer)
    assert changes.position(climate) is None, "the writer may still commit a change before what is read now"
    writer.commit()
    assert changes.position(climate) == taken
    assert positions(follower.read()) == [taken]
