"""Rows of migrations: begun, advanced, ended.

Each change is written together with the row of the server, which the caller has locked.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, and_, bindparam, case, exists, false, func, or_, select, text, update

from climate.compute.models.migration import ERROR, Migration
from climate.compute.models.server import ACTIVE, SHUTOFF, VERIFY_RESIZE, Room
from climate.compute.store.columns import in_parameter, sql_of
from climate.compute.store.nodes import resource_claims
from climate.compute.store.tables.migrations import migrations
from climate.compute.store.tables.nodes import nodes, services
from climate.compute.store.tables.servers import servers
from climate.database.advisory_locks import Subject

COLUMNS = sql_of(migrations.c, "m")
"""Columns of a row `m`, for `migration_of`."""

_BEGIN = text(f"""
    WITH made AS (
        INSERT INTO compute_migrations AS m (
            server_id, project_id, user_id, type, status, source_host, source_node, dest_host, dest_node, dest_ip,
            source_node_id, dest_node_id, old_flavor, new_flavor, held_node_id, vcpus, ram_mb, disk_mb, created_at,
            updated_at)
        SELECT s.id, :project_id, :user_id, :type, :status, f.service_host, f.name, t.service_host, t.name, t.host_ip,
               f.id, t.id, s.flavor ->> 'id', s.flavor ->> 'id', :held, s.vcpus, s.ram_mb, s.disk_mb, :now, :now
        FROM compute_servers s JOIN compute_nodes f ON f.id = s.node_id JOIN compute_nodes t ON t.id = :dest
        WHERE s.id = CAST(:server_id AS uuid)
        RETURNING {COLUMNS}),
    marked AS (
        UPDATE compute_servers s SET migration_id = made.id, before = coalesce(CAST(:before AS text), s.before)
        FROM made WHERE s.id = CAST(:server_id AS uuid))
    SELECT * FROM made
""")

_GET = select(migrations).where(migrations.c.id == bindparam("id"))
_GET_LOCKED = _GET.with_for_update(key_share=True)

# Both rows in one statement: the usage of the two nodes stays the same.
_SWAP = text("""
    WITH moved AS (
        UPDATE compute_servers
        SET node_id = :to, worker = NULL, worker_until = NULL, rung_at = NULL, updated_at = :now,
            task_at = CASE WHEN task IS NULL THEN task_at ELSE :now END
        WHERE id = CAST(:server_id AS uuid))
    UPDATE compute_migrations SET held_node_id = :held, updated_at = :now WHERE id = :id
""")

_FREE = text("""
    UPDATE compute_migrations m SET held_node_id = NULL, updated_at = :now
    FROM (SELECT id, held_node_id FROM compute_migrations WHERE id = :id FOR NO KEY UPDATE) was
    WHERE m.id = was.id AND was.held_node_id IS NOT NULL
    RETURNING was.held_node_id, m.vcpus, m.ram_mb, m.disk_mb
""")

# A server that is migrating, or waits for confirmation, can return there: then its migration is not over.
_HELD_BY = (
    select(
        migrations,
        servers.c.id.is_(None).label("over"),
        func.coalesce(
            and_(in_parameter(servers.c.task, "tasks"), servers.c.node_id == migrations.c.dest_node_id), false()
        ).label("away"),
    )
    .join(nodes, nodes.c.id == migrations.c.held_node_id)
    .outerjoin(servers, servers.c.migration_id == migrations.c.id)
    .where(nodes.c.service_host == bindparam("host"))
    .order_by(migrations.c.id)
)

_HOLDING = nodes.alias()

_STRANDED = (
    select(migrations)
    .join(_HOLDING, _HOLDING.c.id == migrations.c.held_node_id)
    .join(servers, servers.c.migration_id == migrations.c.id)
    .join(nodes, nodes.c.id == servers.c.node_id)
    .join(services, services.c.host == nodes.c.service_host)
    .where(_HOLDING.c.service_host == bindparam("host"), servers.c.task == bindparam("task"))
    .where(servers.c.node_id == migrations.c.dest_node_id)
    .where(or_(servers.c.worker_until.is_(None), servers.c.worker_until < bindparam("now")))
    .where(or_(services.c.forced_down, services.c.beat_at <= bindparam("beat_before")))
    .order_by(migrations.c.id)
)

_HERE = text("""
    SELECT s.id::text AS server_id, n.service_host AS host, n.name AS node, h.service_host AS held_host, m.type AS type,
           h.name AS held_node,
           ARRAY(SELECT c.service_host FROM compute_cluster_members c WHERE c.cluster = n.name) AS member_hosts
    FROM compute_servers s LEFT JOIN compute_nodes n ON n.id = s.node_id
    LEFT JOIN compute_migrations m ON m.id = s.migration_id
    LEFT JOIN compute_nodes h ON h.id = m.held_node_id
    WHERE s.id = ANY(CAST(:ids AS uuid[]))
""")

MOST_AT_ONCE = 100
"""Maximum number of servers that one round examines, chosen at random: those that fail keep no other from its turn."""

# One server of a node at a time, so that each is down as briefly as possible. Nodes take turns.
_MIGRATING = servers.alias()

_LEAVING = (
    select(servers.c.id)
    .join(nodes, nodes.c.id == servers.c.node_id)
    .where(nodes.c.service_host == bindparam("host"), in_parameter(nodes.c.pool, "pools"), nodes.c.present)
    .where(servers.c.status.in_((ACTIVE, SHUTOFF)), servers.c.task.is_(None))
    .where(
        ~exists()
        .where(_MIGRATING.c.migration_id == migrations.c.id, migrations.c.source_node_id == nodes.c.id)
        .correlate(nodes)
    )
    .order_by(func.row_number().over(partition_by=nodes.c.id, order_by=func.random()), func.random())
    .limit(MOST_AT_ONCE)
)

_LOCK_MOVES = text(Subject.SERVER_MOVES.lock("node"))

_FORGET = text("""
    DELETE FROM compute_migrations WHERE id = ANY(ARRAY(
        SELECT m.id FROM compute_migrations m
        WHERE m.held_node_id IS NULL AND m.updated_at < CAST(:now AS timestamptz) - make_interval(secs => :seconds)
          AND NOT EXISTS (SELECT FROM compute_servers s WHERE s.id = m.server_id)
        ORDER BY m.updated_at LIMIT :limit))
""")

MOST_FORGOTTEN = 5000
"""Maximum number of old migrations that one call deletes."""


@dataclass(frozen=True, slots=True)
class ServerLocation:
    """A server's node and the node that its migration holds, with the hosts of their services; None: there is none."""

    server_id: str
    host: str | None
    node: str | None
    held_host: str | None
    held_node: str | None
    type: str | None
    member_hosts: Sequence[str] = ()
    """The services that ever offered a member to its node, if that is a cluster: its guest may be there."""


@dataclass(frozen=True, slots=True)
class Held:
    """A migration that holds capacity on a node."""

    over: bool
    """Its server does not return to that node, so that its remains there can be deleted."""
    away: bool
    """Its server is on its way to the other node, and has not arrived."""
    migration: Migration


@dataclass(frozen=True, slots=True)
class Start:
    """A migration to be inserted; `by` is the requester (project_id, user_id), `held` a node."""

    type: str
    status: str
    dest: int
    held: int
    by: Mapping[str, str]
    before: str | None = None
    """Status of the server after a revert; None: the status before."""


def begin(conn: Connection, server_id: str, start: Start, now: datetime) -> Migration:
    """Insert a migration from the node of a server, whose capacity on `held` is claimed already."""
    given = {
        "server_id": server_id,
        "project_id": start.by.get("project_id", ""),
        "user_id": start.by.get("user_id", ""),
        "type": start.type,
        "status": start.status,
        "dest": start.dest,
        "held": start.held,
        "before": start.before,
        "now": now,
    }
    return migration_of(conn.execute(_BEGIN, given).mappings().one())


def get(conn: Connection, migration_id: int, *, lock: bool = False) -> Migration | None:
    """Return the migration, with its row locked if requested; None if it does not exist."""
    row = conn.execute(_GET_LOCKED if lock else _GET, {"id": migration_id}).mappings().one_or_none()
    return migration_of(row) if row else None


def set_status(conn: Connection, migration_id: int, status: str, now: datetime, error: str | None = None) -> None:
    """Set the status of a migration; an error is final."""
    own = migrations.c
    values = {"status": case((own.status == ERROR, own.status), else_=status), "updated_at": now}
    if error is not None:
        values["error"] = error
    conn.execute(update(migrations).where(own.id == migration_id).values(values))


def set_progress(conn: Connection, migration_id: int, progress: Mapping[str, int], now: datetime) -> None:
    """Store the progress of a live migration; see `Migration.progress`."""
    progressed = migrations.c.progress.concat(dict(progress))
    conn.execute(update(migrations).where(migrations.c.id == migration_id).values(progress=progressed, updated_at=now))


def swap(conn: Connection, migration: Migration, to: int, held: int, now: datetime) -> None:
    """Move the server of a migration to the other of its nodes, and hold its capacity on the one that it leaves.

    The task becomes free for that node's service to claim.
    """
    given = {"id": migration.id, "server_id": migration.server_id, "to": to, "held": held, "now": now}
    conn.execute(_SWAP, given)


def free(conn: Connection, migration_id: int, now: datetime) -> bool:
    """Release the capacity that is held for a migration; False if none is."""
    row = conn.execute(_FREE, {"id": migration_id, "now": now}).first()
    if row is not None:
        resource_claims.release(conn, row.held_node_id, Room(row.vcpus, row.ram_mb, row.disk_mb))
    return row is not None


def let_go(conn: Connection, server_id: str) -> None:
    """Record that a server is no longer migrating."""
    conn.execute(update(servers).where(servers.c.id == server_id).values(migration_id=None, before=None))


def fail(conn: Connection, migration_id: int, reason: str, now: datetime) -> None:
    """Record the failure of a migration and its reason."""
    set_status(conn, migration_id, ERROR, now, reason)


def held_by(conn: Connection, host: str, tasks: Sequence[str], server_id: str | None = None) -> list[Held]:
    """Return migrations that hold capacity on the nodes of this service; `server_id` None: of all servers.

    `tasks`: the tasks of servers that are on their way and have not arrived.
    """
    query = _HELD_BY if server_id is None else _HELD_BY.where(migrations.c.server_id == server_id)
    return [_held(row) for row in conn.execute(query, {"host": host, "tasks": list(tasks)}).mappings()]


def stranded(conn: Connection, host: str, task: str, now: datetime, down: float) -> list[Migration]:
    """Return migrations from the nodes of this service whose destinations had no heartbeat for `down` seconds."""
    given = {"host": host, "task": task, "now": now, "beat_before": now - timedelta(seconds=down)}
    return [migration_of(row) for row in conn.execute(_STRANDED, given).mappings()]


def whereabouts(conn: Connection, ids: Sequence[str]) -> list[ServerLocation]:
    """Return the nodes of the existing servers of these ids."""
    return [ServerLocation(**row) for row in conn.execute(_HERE, {"ids": list(ids)}).mappings()]


def unconfirmed(conn: Connection, host: str, now: datetime, seconds: float) -> list[str]:
    """Return servers of a service that have waited for so many seconds for confirmation, some if there are many."""
    query = (
        select(servers.c.id)
        .join(nodes, nodes.c.id == servers.c.node_id)
        .where(nodes.c.service_host == host, servers.c.status == VERIFY_RESIZE, servers.c.task.is_(None))
        .where(servers.c.updated_at < now - timedelta(seconds=seconds))
        .order_by(func.random())
        .limit(MOST_AT_ONCE)
    )
    return list(conn.scalars(query))


def leaving(conn: Connection, host: str, pools: Collection[str]) -> list[str]:
    """Return servers of a service that can leave nodes in these pools, from which no other one is migrating.

    If there are many, some of each node.
    """
    return list(conn.scalars(_LEAVING, {"host": host, "pools": sorted(pools)}))


def is_left_by_another(conn: Connection, node_id: int, server_id: str) -> bool:
    """Return whether another server is migrating from a node. Concurrent callers wait until this transaction ends."""
    conn.execute(_LOCK_MOVES, {"node": str(node_id)})
    query = (
        select(servers.c.id)
        .join(migrations, migrations.c.id == servers.c.migration_id)
        .where(migrations.c.source_node_id == node_id, servers.c.id != server_id, servers.c.task.is_not(None))
    )
    return bool(conn.scalar(select(query.exists())))


def moved_by(conn: Connection, host: str, user_id: str) -> list[str]:
    """Return servers that this user had migrated away from a service, and that wait for confirmation."""
    query = (
        select(servers.c.id)
        .join(migrations, migrations.c.id == servers.c.migration_id)
        .where(migrations.c.source_host == host, migrations.c.user_id == user_id)
        .where(servers.c.status == VERIFY_RESIZE, servers.c.task.is_(None))
        .order_by(func.random())
        .limit(MOST_AT_ONCE)
    )
    return list(conn.scalars(query))


def forget(conn: Connection, now: datetime, seconds: float, most: int = MOST_FORGOTTEN) -> None:
    """Delete migrations of deleted servers that have not changed for so many seconds, the oldest `most` of them."""
    conn.execute(_FORGET, {"now": now, "seconds": seconds, "limit": most})


def of_other_drivers(conn: Connection, node_id: int) -> list[int]:
    """Return the nodes with another driver than this one's, which cannot use its disks."""
    own = nodes.alias("own")
    is_other_cluster = and_(
        nodes.c.driver == "cluster", nodes.c.service_host == own.c.service_host, nodes.c.id != own.c.id
    )
    query = select(nodes.c.id).join(own, own.c.id == node_id)
    return list(conn.scalars(query.where(or_(nodes.c.driver != own.c.driver, is_other_cluster))))


def _held(row: RowMapping) -> Held:
    values = dict(row)
    return Held(values.pop("over"), values.pop("away"), migration_of(values))


def migration_of(row: RowMapping | dict[str, object]) -> Migration:
    """Return the migration of a row of COLUMNS."""
    values = dict(row)
    held = Room(**{name: values.pop(name) for name in asdict(Room())})
    return Migration(**values, held=held)
