"""Many hosts and leases at once, written by SQL: rows as the engine would have left them, without their journal."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Engine, text

from benchmarks.figures import step

FIRST = timedelta(days=30)
YEARS = timedelta(days=5 * 365)
"""The seeded leases lie in this stretch after the first month: some half of the hosts is taken at any time in it."""

_HOSTS = text("""
    INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                       hypervisor_version, reservable, extra, created_at)
    SELECT 'node-' || n, 'bench', 4 + n % 5, 8192, 100, '{}', 'fake', 1000000, true,
           jsonb_build_object('gpu_count', (n % 3)::text), now()
    FROM generate_series(1, :count) AS n
""")

# Each host gets a lease in every slot; hosts are shifted against each other, so that they do not all change at once.
_PLANNED = text("""
    CREATE UNLOGGED TABLE bench_planned AS
    SELECT gen_random_uuid() AS lease, gen_random_uuid() AS reservation, h.id AS host,
           CAST(:first AS timestamptz) + CAST(:every AS interval) * (slot + (h.place * 0.618034) % 1) AS start
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM hosts) AS h,
         generate_series(0, CAST(:slots AS int) - 1) AS slot
    ORDER BY h.id, slot
""")

_ROWS = (
    """
    INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                        version, created_at)
    SELECT lease, 'seeded', 'project-' || host % 50, 'user', start, start + CAST(:length AS interval), 'PENDING',
           false, false, false, 1, now()
    FROM bench_planned
    """,
    """
    INSERT INTO reservations (id, lease_id, position, resource_type, status, spec, exists_before_start,
                              resources_changed)
    SELECT reservation, lease, 0, 'physical:host', 'pending',
           '{"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": "", "before_end": "default"}',
           false, false
    FROM bench_planned
    """,
    """
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, attempts, token)
    SELECT gen_random_uuid(), lease, seq, kind, start + CAST(:length AS interval) * share,
           start + CAST(:length AS interval) * share, 'UNDONE', 0, 0
    FROM bench_planned, (VALUES (20, 'start_lease', 0), (60, 'end_lease', 1)) AS e (seq, kind, share)
    """,
    """
    INSERT INTO allocations (reservation_id, host, during, kind, state)
    SELECT reservation, host, tstzrange(start, start + CAST(:length AS interval)), 'lease', 'held' FROM bench_planned
    """,
    "DROP TABLE bench_planned",
)

# Foreign keys are looked at for the tables as a whole afterwards, which is much quicker than row by row.
_KEYS = text("""
    SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || conname,
           'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint
    WHERE contype = 'f' AND conrelid::regclass::text IN ('reservations', 'events', 'allocations')
""")

_TABLES = "hosts, leases, reservations, events, allocations, actions, journal"

# One is a failed evacuation of another host, so that each filter has a value that only one of them has.
_MIGRATIONS = text("""
    INSERT INTO compute_migrations (server_id, project_id, user_id, type, status, source_host, source_node, dest_host,
                                    dest_node, dest_ip, old_flavor, new_flavor, created_at, updated_at)
    SELECT gen_random_uuid(), 'bench-project', 'bench-user', CASE WHEN rare THEN 'evacuation' ELSE 'migration' END,
           CASE WHEN rare THEN 'error' ELSE 'confirmed' END, CASE WHEN rare THEN 'rare' ELSE 'often' END, 'node-1',
           CASE WHEN rare THEN 'seldom' ELSE 'mostly' END, 'node-2', '', '1', '1', at, at
    FROM (SELECT n = 1 AS rare, now() - interval '29 days' * random() AS at
          FROM generate_series(1, CAST(:count AS int)) AS n) AS made
""")

_COPIES = text("""
    CREATE TEMPORARY TABLE copies ON COMMIT DROP AS
    SELECT original, gen_random_uuid() AS copy, CAST(:age AS interval) + CAST(:spread AS interval) * random() AS ago
    FROM unnest(CAST(:originals AS uuid[])) AS original, generate_series(1, :each)
""")

# The id of a part is made of the copy's id and the part's: nothing has to remember which became which.
_COPIED = (
    """
    INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                        version, created_at, updated_at)
    SELECT copy, name, project_id, user_id, start_date - ago, end_date - ago, status, degraded, deleting, gone,
           version, created_at - ago, updated_at - ago
    FROM copies JOIN leases ON id = original
    """,
    """
    INSERT INTO reservations (id, lease_id, position, resource_type, resource_id, status, spec, exists_before_start,
                              missing, resources_changed, parts)
    SELECT CAST(md5(copy::text || id) AS uuid), copy, position, resource_type, resource_id, status, spec,
           exists_before_start, missing, resources_changed, parts
    FROM copies JOIN reservations ON lease_id = original
    """,
    """
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, outcome, reason, attempts, token,
                        first_claimed_at, updated_at, name, shares, project_id)
    SELECT CAST(md5(copy::text || id) AS uuid), copy, seq, kind, due_at - ago, run_at - ago, status, outcome, reason,
           attempts, token, first_claimed_at - ago, updated_at - ago, name, shares, project_id
    FROM copies JOIN events ON lease_id = original
    """,
    """
    INSERT INTO allocations (reservation_id, host, during, kind, state, slots, vcpus, memory_mb, disk_gb)
    SELECT CAST(md5(copy::text || r.id) AS uuid), host, tstzrange(lower(during) - ago, upper(during) - ago), kind,
           state, slots, vcpus, memory_mb, disk_gb
    FROM copies JOIN reservations r ON lease_id = original JOIN allocations ON reservation_id = r.id
    """,
    """
    INSERT INTO actions (event_id, due_at, step, token, state)
    SELECT CAST(md5(copy::text || e.id) AS uuid), a.due_at - ago, step, a.token, state
    FROM copies JOIN events e ON lease_id = original JOIN actions a ON event_id = e.id
    """,
)

# Facts tell of the lease, its reservations and its events by their ids.
_COPIED_FACTS = """
    INSERT INTO journal (stream, version, kind, body, actor, request_id, recorded_at)
    SELECT copy, version, kind, CAST({body} AS jsonb), actor, request_id, recorded_at - ago
    FROM copies JOIN journal ON stream = original WHERE original = '{original}'
"""
_PARTS = text("""
    SELECT id FROM reservations WHERE lease_id = :lease UNION ALL SELECT id FROM events WHERE lease_id = :lease
""")


def hosts(engine: Engine, count: int) -> None:
    """Hosts node-1 to node-`count`, registered."""
    with engine.begin() as conn:
        conn.execute(_HOSTS, {"count": count})


def leases(engine: Engine, count: int, now: datetime, first: timedelta = FIRST, over: timedelta = YEARS) -> None:
    """`count` pending leases of one host each in an otherwise empty database, evenly over all hosts and years.

    They begin `first` after now, and last `over`.
    """
    with engine.connect() as conn:
        hosts_in_all = conn.execute(text("SELECT count(*) FROM hosts")).scalar_one()
    slots = count // hosts_in_all
    if not slots:
        return
    every = over / slots
    given = {"first": now + first, "every": every, "slots": slots, "length": every / 2}
    with step(f"writing {count:,} leases"), engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("SET LOCAL synchronous_commit = off")
        keys = conn.execute(_KEYS).all()
        for drop, _ in keys:
            conn.exec_driver_sql(drop)
        for statement in (_PLANNED, *map(text, _ROWS)):
            conn.execute(statement, given)
        for _, add in keys:
            conn.exec_driver_sql(add)


def copy(
    engine: Engine,
    originals: Sequence[UUID],
    count: int,
    age: timedelta = timedelta(0),
    spread: timedelta | None = None,
) -> None:
    """Copies of leases with all their rows and facts, `count` in all, evenly of each original.

    Their rows are older than those of the originals by `age`, and by a part of `spread`; their facts are not, so a
    journal agrees with the rows of copies without an age only.
    """
    given = {
        "originals": list(originals),
        "each": count // len(originals),
        "age": age,
        "spread": spread or timedelta(0),
    }
    with engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("SET LOCAL synchronous_commit = off")
        # Foreign keys are not looked at: all rows that they lead to are made here.
        conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        for statement in (_COPIES, *map(text, _COPIED)):
            conn.execute(statement, given)
        for original in originals:
            _copy_facts(conn, original)


def _copy_facts(conn: Connection, original: UUID) -> None:
    body = f"replace(body::text, '{original}', copy::text)"
    for part in conn.scalars(_PARTS, {"lease": original}):
        body = f"replace({body}, '{part}', CAST(md5(copy::text || '{part}') AS uuid)::text)"
    conn.exec_driver_sql(_COPIED_FACTS.format(body=body, original=original))


def migrations(engine: Engine, count: int) -> None:
    """`count` finished migrations of deleted servers in the last 29 days, one of which failed."""
    with engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("SET LOCAL synchronous_commit = off")
        conn.execute(_MIGRATIONS, {"count": count})
        conn.exec_driver_sql("ANALYZE compute_migrations")


def settle(engine: Engine) -> None:
    """Let the planner know what there is, as an autovacuum would have by then."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql("SET statement_timeout = 0")
        conn.exec_driver_sql(f"VACUUM ANALYZE {_TABLES}")
