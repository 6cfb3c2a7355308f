"""The servers of all cells, in the database of the top cell."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, delete, func, or_, select, text, update

from climate.compute.cells.messaging import paths
from climate.compute.models.flavor import recorded
from climate.compute.models.server import Address, Room, Server
from climate.compute.store.columns import in_array
from climate.compute.store.servers.properties import change_in
from climate.compute.store.tables.cell_servers import cell_servers
from climate.compute.store.tables.servers import actions
from climate.database.batch_delete import drop

UNHEARD_SECONDS = 600.0
"""Seconds after which a command that its cell has not received is hidden: it waits for a broker, or is lost."""

COLUMNS = """
    s.id::text, s.name, s.project_id, s.user_id, s.status, s.task, s.flavor, s.image_id::text, s.metadata, s.zone,
    s.access_ipv4, s.access_ipv6, s.build_id, s.launch_index, s.created_at, s.updated_at, s.launched_at, s.key_name,
    s.fault, s.description, s.locked_by, s.locked_reason, s.before, s.vcpus, s.ram_mb, s.addresses, s.cell, s.place,
    s.commands, s.tags
"""

FROM = "FROM compute_cell_servers s"

_GET = text(f"SELECT {COLUMNS} {FROM} WHERE s.id = CAST(:id AS uuid) AND s.deleted_at IS NULL")

_GET_LOCKED = text(f"{_GET.text} FOR NO KEY UPDATE OF s")

# The top cell owns name, description, lock, metadata and image: a report of a known server does not change them.
_REPORT = text("""
    WITH r AS (
        SELECT DISTINCT ON (id) * FROM jsonb_to_recordset(CAST(:servers AS jsonb)) AS r(
            id uuid, version bigint, command bigint, refusal text, name text, project_id text, user_id text,
            status text, task text, flavor jsonb, vcpus int, ram_mb int, image_id uuid, metadata jsonb, zone text,
            build_id text, launch_index int, key_name text, description text, access_ipv4 text, access_ipv6 text,
            locked_by text, locked_reason text, before text, place text, addresses jsonb, fault jsonb,
            created_at timestamptz, updated_at timestamptz, launched_at timestamptz, changed_at timestamptz)
        ORDER BY id, version DESC),
    stored AS (
        INSERT INTO compute_cell_servers AS s (
            id, cell, version, name, project_id, user_id, status, task, flavor, vcpus, ram_mb, image_id, metadata, zone,
            build_id, launch_index, key_name, description, access_ipv4, access_ipv6, locked_by, locked_reason, before,
            place, addresses, fault, commands, created_at, updated_at, launched_at, changed_at,
            reported_at)
        SELECT id, :cell, version, name, project_id, user_id, status, task, flavor, vcpus, ram_mb, image_id, metadata,
               zone, build_id, launch_index, key_name, description, access_ipv4, access_ipv6, locked_by, locked_reason,
               before, place, addresses, fault, command, created_at, updated_at, launched_at, changed_at,
               CAST(:now AS timestamptz)
        FROM r ORDER BY id
        ON CONFLICT (id) DO UPDATE
        SET cell = excluded.cell, version = excluded.version, status = excluded.status,
            task = CASE WHEN s.commands > excluded.commands AND s.commanded_at > :unheard THEN s.task
                        ELSE excluded.task END,
            flavor = excluded.flavor, vcpus = excluded.vcpus, ram_mb = excluded.ram_mb, zone = excluded.zone,
            key_name = excluded.key_name, before = excluded.before, place = excluded.place,
            addresses = excluded.addresses, fault = excluded.fault,
            commands = greatest(s.commands, excluded.commands), updated_at = excluded.updated_at,
            launched_at = excluded.launched_at, changed_at = excluded.changed_at, reported_at = excluded.reported_at
        WHERE s.version < excluded.version AND s.deleted_at IS NULL AND coalesce(s.cell, excluded.cell) = excluded.cell
        RETURNING id, task),
    finished AS (
        UPDATE compute_actions a SET finished_at = :now,
               message = CASE WHEN r.fault IS NOT NULL OR r.refusal <> '' THEN 'Error' END
        FROM r JOIN stored ON stored.id = r.id AND stored.task IS NULL
        WHERE a.server_id = r.id AND a.finished_at IS NULL)
    SELECT id::text FROM stored
""")

_DESTROY = text("""
    INSERT INTO compute_cell_servers AS s (
        id, cell, name, project_id, user_id, status, vcpus, ram_mb, build_id, launch_index, deleted_at)
    SELECT id, :cell, '', '', '', 'DELETED', 0, 0, '', 0, :now FROM unnest(CAST(:ids AS uuid[])) AS r(id) ORDER BY id
    ON CONFLICT (id) DO UPDATE
    SET status = 'DELETED', task = NULL, addresses = '[]', metadata = '{}', fault = NULL,
        deleted_at = excluded.deleted_at
    WHERE s.deleted_at IS NULL AND coalesce(s.cell, :cell) = :cell
    RETURNING id::text
""")

_BEGIN = text("""
    INSERT INTO compute_cell_servers (
        id, name, project_id, user_id, status, task, flavor, vcpus, ram_mb, image_id, metadata, zone, build_id,
        launch_index, key_name, description, access_ipv4, access_ipv6, tags, created_at, updated_at)
    SELECT s.id, s.name, :project_id, :user_id, 'BUILD', 'scheduling', CAST(:flavor AS jsonb), :vcpus, :ram_mb,
           CAST(:image_id AS uuid), CAST(:metadata AS jsonb), :zone, :build_id, s.launch_index, :key_name, :description,
           :access_ipv4, :access_ipv6, :tags, :now, :now
    FROM unnest(CAST(:ids AS uuid[]), CAST(:names AS text[]), CAST(:places AS int[])) AS s(id, name, launch_index)
    ON CONFLICT (id) DO NOTHING
""")

_CHANGE = change_in("compute_cell_servers")

_AGES = text("""
    SELECT cell, percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM reported_at - changed_at)) AS age
    FROM compute_cell_servers WHERE reported_at > :since AND cell IS NOT NULL GROUP BY cell
""")


def get(conn: Connection, server_id: str, *, lock: bool = False) -> Server | None:
    """Return the server, with its row locked if requested; None if it does not exist or is deleted."""
    row = conn.execute(_GET_LOCKED if lock else _GET, {"id": server_id}).mappings().one_or_none()
    return server_of(row) if row else None


def cells_of(conn: Connection, ids: Sequence[str]) -> dict[str, str | None]:
    """Return id -> path to the cell of each of these servers; None: no cell has reported it."""
    query = select(cell_servers.c.id, cell_servers.c.cell).where(in_array(cell_servers.c.id, ids))
    return {row.id: row.cell for row in conn.execute(query)}


def report(conn: Connection, cell: str, servers: Sequence[Mapping[str, object]], now: datetime) -> set[str]:
    """Store a cell's report of its servers; return the ids of the changed ones.

    Only the report with the highest version of a server counts, and none once it is deleted or another cell has it.
    """
    given = json.dumps(list(servers))
    unheard = now - timedelta(seconds=UNHEARD_SECONDS)
    return set(conn.execute(_REPORT, {"servers": given, "cell": cell, "unheard": unheard, "now": now}).scalars())


def not_stored(conn: Connection, cell: str, ids: Sequence[str]) -> list[RowMapping]:
    """Return those of these servers that another cell has, or that were deleted before a cell reported them."""
    own = cell_servers.c
    query = select(own.id, own.cell, own.unclaimed, own.deleted_at.is_not(None).label("deleted")).where(
        in_array(own.id, ids), or_(own.unclaimed, own.cell != cell)
    )
    return list(conn.execute(query).mappings())


def destroy(conn: Connection, cell: str, ids: Sequence[str], now: datetime) -> set[str]:
    """Mark servers as deleted that a cell reports as gone; return the ids of the changed ones."""
    destroyed = set(conn.execute(_DESTROY, {"cell": cell, "ids": sorted(ids), "now": now}).scalars())
    if destroyed:
        _delete_actions(conn, sorted(destroyed))
    return destroyed


def abandon(conn: Connection, server_id: str, now: datetime) -> None:
    """Mark a server as deleted that no cell has reported; a cell that reports it later is instructed to delete it."""
    gone: dict[str, object] = {
        "status": "DELETED",
        "task": None,
        "addresses": [],
        "metadata": {},
        "fault": None,
        "deleted_at": now,
    }
    this = (cell_servers.c.id == server_id, cell_servers.c.deleted_at.is_(None))
    conn.execute(update(cell_servers).where(*this).values(**gone, unclaimed=True))
    _delete_actions(conn, [server_id])


def _delete_actions(conn: Connection, ids: Sequence[str]) -> None:
    """Delete the actions of these servers."""
    conn.execute(delete(actions).where(in_array(actions.c.server_id, ids)))


def claimed(conn: Connection, ids: Sequence[str]) -> None:
    """Record that the cells of these servers were instructed to delete them."""
    conn.execute(update(cell_servers).where(in_array(cell_servers.c.id, ids)).values(unclaimed=False))


def begin(conn: Connection, servers: Sequence[Server]) -> None:
    """Insert servers that are being scheduled; they differ in id, name and launch_index."""
    first = servers[0]
    given = {
        "ids": [server.id for server in servers],
        "names": [server.name for server in servers],
        "places": [server.launch_index for server in servers],
        "project_id": first.project_id,
        "user_id": first.user_id,
        "flavor": json.dumps(asdict(first.flavor)),
        "vcpus": first.flavor.vcpus,
        "ram_mb": first.flavor.ram_mb,
        "image_id": first.image_id,
        "metadata": json.dumps(dict(first.metadata)),
        "zone": first.zone,
        "build_id": first.build_id,
        "key_name": first.key_name,
        "description": first.description,
        "access_ipv4": first.access[0],
        "access_ipv6": first.access[1],
        "tags": list(first.tags),
        "now": first.created_at,
    }
    conn.execute(_BEGIN, given)


def fail(conn: Connection, ids: Sequence[str], fault: Mapping[str, object], now: datetime) -> set[str]:
    """Put servers that no cell has reported into ERROR with a fault; return the ids of the changed ones."""
    own = cell_servers.c
    # The report of the server's cell takes precedence.
    statement = (
        update(cell_servers)
        .where(in_array(own.id, ids), own.cell.is_(None), own.deleted_at.is_(None))
        .values(status="ERROR", task=None, fault=dict(fault), updated_at=now)
        .returning(own.id)
    )
    failed = set(conn.scalars(statement))
    if failed:
        unfinished = (in_array(actions.c.server_id, sorted(failed)), actions.c.finished_at.is_(None))
        conn.execute(update(actions).where(*unfinished).values(finished_at=now, message="Error"))
    return failed


def command(conn: Connection, server_id: str, task: str | None, now: datetime) -> int:
    """Return the number of the next command for a server; `task`: shown until the cell has carried it out."""
    values = {"commands": cell_servers.c.commands + 1, "commanded_at": now, "updated_at": now}
    statement = update(cell_servers).where(cell_servers.c.id == server_id).values(values)
    if task is not None:
        statement = statement.values(task=task)
    return int(conn.execute(statement.returning(cell_servers.c.commands)).scalar_one())


def change(conn: Connection, server_id: str, changes: Mapping[str, object], now: datetime) -> None:
    """Update the top cell's data of a server: name, description, metadata, image_id, access, lock, tags."""
    conn.execute(_CHANGE, {"id": server_id, "changes": json.dumps(changes, default=dict), "now": now})


def used(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the instances, cores and ram_mb of a project in all cells."""
    own = cell_servers.c
    query = select(
        func.count().label("instances"),
        func.coalesce(func.sum(own.vcpus), 0).label("cores"),
        func.coalesce(func.sum(own.ram_mb), 0).label("ram_mb"),
    ).where(own.project_id == project_id, own.deleted_at.is_(None))
    return {key: int(value) for key, value in conn.execute(query).mappings().one().items()}


def forget(conn: Connection, before: datetime) -> int:
    """Delete a portion of the rows of servers that were deleted before then; return their number."""
    return drop(conn, cell_servers, cell_servers.c.deleted_at < before)


def counts(conn: Connection) -> list[tuple[str, str, int]]:
    """Return (path of the cell, status, servers); an empty path: no cell has reported them."""
    path = func.coalesce(cell_servers.c.cell, "").label("cell")
    query = (
        select(path, cell_servers.c.status, func.count())
        .where(cell_servers.c.deleted_at.is_(None))
        .group_by(cell_servers.c.cell, cell_servers.c.status)
    )
    return [(cell, status, servers) for cell, status, servers in conn.execute(query)]


def count_below(conn: Connection, path: str) -> int:
    """Return the number of servers of a cell and those below it."""
    own = cell_servers.c
    below = or_(own.cell == path, func.starts_with(own.cell, f"{path}!"))
    return conn.execute(select(func.count()).where(own.deleted_at.is_(None), below)).scalar_one()


def by_place(conn: Connection) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return (path of the cell, digest of the node) -> (id, name) of the servers there."""
    own = cell_servers.c
    query = (
        select(own.cell, own.place, own.id, own.name)
        .where(own.deleted_at.is_(None), own.cell.is_not(None), own.place.is_not(None))
        .order_by(own.created_at, own.id)
    )
    result: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in conn.execute(query):
        result.setdefault((row.cell, row.place), []).append((row.id, row.name))
    return result


def ages(conn: Connection, since: datetime) -> dict[str, float]:
    """Return path of a cell -> 99th percentile of the delay in seconds of its changes that were stored since then."""
    return {row.cell: float(row.age) for row in conn.execute(_AGES, {"since": since})}


def server_of(row: RowMapping) -> Server:
    """Return the server in a row of COLUMNS; its node is `<path of the cell>@<digest of the node>`."""
    values = dict(row)
    cell, place = values.pop("cell"), values.pop("place")
    values.pop("commands")
    values["flavor"] = recorded(values["flavor"])
    values["addresses"] = tuple(Address(**address) for address in values["addresses"])
    values["access"] = (values.pop("access_ipv4"), values.pop("access_ipv6"))
    values["held"] = Room(values.pop("vcpus"), values.pop("ram_mb"))
    values["hints"] = {}
    values["tags"] = tuple(values["tags"])
    values["service_host"] = cell
    values["node"] = paths.with_item(cell, place) if cell and place else None
    # A placeholder for a node of another database.
    values["node_id"] = 0 if place else None
    values["node_zone"] = values["zone"] if place else None
    return Server(**values)
