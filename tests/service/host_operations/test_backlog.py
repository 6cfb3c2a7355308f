"""A look at what is due costs the same however much that is, and passes by what cannot run yet."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, text

from climate.context import Climate
from climate.domain.status import IN_PROGRESS, UNDONE
from climate.service.events import event_dispatch
from climate.store.leases import due_events, event_claims
from climate.store.leases.due_events import Cursor
from tests.campaign import cases
from tests.conftest import Clock
from tests.service.lease_actions import START, get, hosts_wanted, make
from tests.service.storage_factory import pool, storage_wanted

LEASES = """
    WITH made AS (
        INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                            version, created_at)
        SELECT gen_random_uuid(), 'many', :project, 'user', CAST(:start AS timestamptz) + n * interval '1 ms',
               CAST(:start AS timestamptz) + interval '9 days', 'PENDING', false, false, false, 1, :start
        FROM generate_series(1, :count) AS n RETURNING id, start_date, end_date)
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, attempts, token, project_id)
    SELECT gen_random_uuid(), id, seq, kind, at, at, 'UNDONE', 0, 0, :project
    FROM made, LATERAL (VALUES (20, 'start_lease', start_date), (60, 'end_lease', end_date)) AS e (seq, kind, at)
"""
"""Leases of which the start is due, as the engine would have left them."""

WRITTEN_TOGETHER = 90_000

READ = """
    SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
    WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace
"""
"""Entries of tables and indexes that this transaction has read."""

HELD_UP = """
    UPDATE events SET run_at = run_at - interval '10 days' WHERE project_id = :project AND kind = 'end_lease'
"""
"""Ends that are due and wait for the starts of their leases, which are not due yet."""

BEGUN = """
    UPDATE claims SET started_at = clock_timestamp() FROM (
        SELECT c.token, e.project_id FROM claims c JOIN events e ON e.id = c.event_id
        WHERE c.started_at IS NULL ORDER BY c.token LIMIT :count) AS first
    WHERE claims.token = first.token RETURNING first.project_id
"""


@pytest.fixture
def due_of(engine: Engine, clock: Clock) -> Callable[..., None]:
    """Write leases of a project whose starts have been due for so many hours."""

    def write(project: str, count: int, hours: float = 1) -> None:
        with engine.begin() as conn:
            start = clock.time - timedelta(hours=hours)
            conn.exec_driver_sql("SET LOCAL session_replication_role = replica")  # keys need not be looked up
            conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
            conn.execute(text(LEASES), {"project": project, "count": count, "start": start})

    return write


def _entries_read(conn: Connection) -> int:
    return int(conn.execute(text(READ)).scalar_one())


def _read_by_a_look(conn: Connection, now: datetime, limit: int = 200) -> int:
    before = _entries_read(conn)
    found = due_events.lock(conn, now, due_events.read_portion(conn, now, Cursor()).ids, limit)
    assert len(found) == limit
    return _entries_read(conn) - before


def _rest(conn: Connection, now: datetime) -> None:
    assert not event_claims.pending_work(conn, now).is_quiet


def _projects(engine: Engine) -> dict[str, int]:
    with engine.connect() as conn:
        rows = conn.execute(text("SELECT project_id, count(*) FROM events WHERE status = 'IN_PROGRESS' GROUP BY 1"))
        return {row[0]: row[1] for row in rows}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("more", cases([5 * due_events.PORTION, 990_000], ordinary=[5 * due_events.PORTION], share=[]))
def test_a_claim_reads_no_more_rows_of_many_than_of_a_few(
    climate: Climate, clock: Clock, engine: Engine, due_of: Callable[..., None], more: int
) -> None:
    """In full length, a million events are due."""

    def read() -> dict[str, int]:
        with engine.connect() as conn:
            conn.exec_driver_sql("ANALYZE leases, events")
            looked = {"claim": _read_by_a_look(conn, clock.time)}
            for name, act in (("oldest", due_events.oldest), ("next", event_claims.next_due), ("rest", _rest)):
                before = _entries_read(conn)
                act(conn, clock.time)
                looked[name] = _entries_read(conn) - before
            return looked

    due_of("p", 10 * due_events.PORTION)  # of fewer, Postgres would rather read all and sort them
    few = read()
    for written in range(0, more, WRITTEN_TOGETHER):
        due_of("p", min(WRITTEN_TOGETHER, more - written))
    many = read()
    assert {name: count for name, count in many.items() if count > 1.2 * few[name] + 20} == {}, few
    assert event_dispatch.claim(climate, "poller", Cursor()).count == event_dispatch.BATCH


def test_a_project_waits_for_no_more_than_its_turn(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    due_of("many", 2 * due_events.PORTION, hours=2)
    due_of("one", 1, hours=1)
    due_of("some", 300, hours=1)
    event_dispatch.claim(climate, "poller", Cursor())
    claimed = _projects(engine)
    assert claimed["one"] == 1
    assert abs(claimed["many"] - claimed["some"]) <= 1


def _begin(engine: Engine, count: int) -> list[str]:
    """Have workers begin the first events of the queue; the projects of those."""
    with engine.begin() as conn:
        return list(conn.execute(text(BEGUN), {"count": count}).scalars())


def test_a_queue_gets_no_more_than_workers_can_take_soon_and_projects_take_turns_in_it(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    due_of("many", 1500, hours=2)
    cursor = Cursor()
    first = event_dispatch.claim(climate, "poller", cursor, ahead=20)
    assert (first.count, first.full) == (20, {"events"})
    due_of("one", 1)
    assert event_dispatch.claim(climate, "poller", cursor, ahead=20).count == 0, "nobody has begun anything"
    assert _begin(engine, 9) == ["many"] * 9
    assert event_dispatch.claim(climate, "poller", cursor, ahead=20).count == 0, (
        "the queue is refilled when it is half empty"
    )
    _begin(engine, 1)
    assert event_dispatch.claim(climate, "poller", cursor, ahead=20).count == 10
    assert _begin(engine, 12).count("one") == 1, "in the first turn after it was due"
    assert _projects(engine) == {"many": 29, "one": 1}


def test_an_end_overtakes_starts_that_are_not_claimed_yet(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    due_of("many", 1500, hours=2)
    due_of("a", 1, hours=-1)
    cursor = Cursor()
    event_dispatch.claim(climate, "poller", cursor, ahead=20)
    with engine.begin() as conn:
        conn.execute(text("UPDATE events SET status = 'DONE' WHERE project_id = 'a' AND kind = 'start_lease'"))
        conn.execute(text(HELD_UP), {"project": "a"})
    _begin(engine, 20)
    event_dispatch.claim(climate, "poller", cursor, ahead=20)
    assert _begin(engine, 1) == ["a"]


def test_projects_with_older_events_do_not_keep_others_from_their_turns(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    for number in range(12):
        due_of(f"old-{number}", 50, hours=2)
    due_of("new", 10)
    cursor = Cursor()
    for _ in range(2):
        event_dispatch.claim(climate, "poller", cursor, ahead=10)
        _begin(engine, 10)
    assert _projects(engine)["new"] >= 1


def test_a_full_queue_keeps_no_other_one_waiting(climate: Climate, clock: Clock, engine: Engine) -> None:
    pool(climate, 100)
    hosts = [make(climate, clock, hosts_wanted(1), start=0) for _ in range(4)]
    both = make(climate, clock, hosts_wanted(1), storage_wanted(1), start=0)
    cursor = Cursor()
    assert event_dispatch.claim(climate, "poller", cursor, ahead=2).full == {"events.physical:host"}
    storage = make(climate, clock, storage_wanted(1), start=0)
    event_dispatch.claim(climate, "poller", cursor, ahead=2)
    statuses = Counter(get(climate, lease).event(START).status for lease in [*hosts, both])
    assert statuses == {IN_PROGRESS: 2, UNDONE: 3}
    assert get(climate, storage).event(START).status is IN_PROGRESS


def test_projects_with_nothing_due_keep_none_from_its_turn(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    for number in range(due_events.PROJECTS + 10):
        due_of(f"later-{number}", 1, hours=-1)
    due_of("many", 2 * due_events.PORTION, hours=2)
    due_of("z", 1, hours=1)
    cursor = Cursor()
    for _ in range(2):
        event_dispatch.claim(climate, "poller", cursor)
    assert _projects(engine)["z"] == 1


def test_what_cannot_run_yet_keeps_nothing_from_being_claimed(
    climate: Climate, engine: Engine, due_of: Callable[..., None]
) -> None:
    due_of("stuck", 3 * due_events.PORTION, hours=-1)
    with engine.begin() as conn:
        conn.execute(text(HELD_UP), {"project": "stuck"})
    due_of("free", 5)
    cursor, counts = Cursor(), []
    while True:
        claimed = event_dispatch.claim(climate, "poller", cursor)
        counts.append(claimed.count)
        if not claimed.more:
            break
    assert sum(counts) == 5
    assert len(counts) <= 6, "a walk ends"
    assert cursor == Cursor(project=cursor.project), "and begins anew"


def test_everything_is_claimed_once(climate: Climate, engine: Engine, due_of: Callable[..., None]) -> None:
    due_of("a", due_events.PORTION + 700)
    due_of("b", 400)
    cursor = Cursor()
    while event_dispatch.claim(climate, "poller", cursor).more:
        pass
    assert _projects(engine) == {"a": due_events.PORTION + 700, "b": 400}
    with engine.connect() as conn:
        tokens = conn.execute(text("SELECT token FROM claims")).scalars().all()
    assert len(set(tokens)) == len(tokens) == due_events.PORTION + 1100


def test_one_claim_is_bounded_by_the_hosts_of_its_leases() -> None:
    def chosen(*holds: int) -> int:
        return len(event_dispatch._no_more_than([due_events.Due(UUID(int=0), UUID(int=0), n) for n in holds], 100))

    assert [chosen(), chosen(500), chosen(500, 1)] == [0, 1, 1]
    assert [chosen(50, 50), chosen(50, 51), chosen(0, 0, 0)] == [2, 1, 3]
