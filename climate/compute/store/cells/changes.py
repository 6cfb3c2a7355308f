"""Changes of a cell's own servers: recorded by triggers, taken by the reporter, each report with a version."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Row, delete, exists, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute import one_by_one
from climate.compute.models.server import Server
from climate.compute.store.columns import in_array
from climate.compute.store.servers.servers import COLUMNS, FROM, server_of
from climate.compute.store.tables.cell_servers import cell_changes, cell_versions
from climate.compute.store.tables.servers import servers
from climate.database.batch_delete import drop

CHANGES = "changes"
"""Payload that the triggers send on the channel of cells."""

Version = Mapping[str, object]
"""The version, command and refusal of the next report of a server."""

_COMPARED = (
    "status, task, flavor, fault, launched_at, node_id, key_name, zone, before, name, metadata, description, "
    "access_ipv4, access_ipv6, locked_by, locked_reason, image_id"
)


def _row(prefix: str) -> str:
    return ", ".join(f"{prefix}.{column}" for column in _COMPARED.split(", "))


TRIGGERS: Mapping[str, str] = {
    "compute_cell_server_written": f"""AFTER UPDATE ON compute_servers FOR EACH ROW
        WHEN ((({_row("OLD")})) IS DISTINCT FROM ({_row("NEW")}))
        EXECUTE FUNCTION compute_cell_server_changed()""",
    "compute_cell_server_made": """AFTER INSERT OR DELETE ON compute_servers FOR EACH ROW
        EXECUTE FUNCTION compute_cell_server_changed()""",
    "compute_cell_vif": """AFTER INSERT OR UPDATE OR DELETE ON compute_vifs FOR EACH ROW
        EXECUTE FUNCTION compute_cell_address_changed()""",
    "compute_cell_address": """AFTER UPDATE ON compute_addresses FOR EACH ROW
        WHEN ((OLD.vif_id, OLD.server_id) IS DISTINCT FROM (NEW.vif_id, NEW.server_id))
        EXECUTE FUNCTION compute_cell_address_changed()""",
    "compute_cell_floating": """AFTER UPDATE ON compute_floating_addresses FOR EACH ROW
        WHEN ((OLD.fixed_network_id, OLD.fixed_address) IS DISTINCT FROM (NEW.fixed_network_id, NEW.fixed_address))
        EXECUTE FUNCTION compute_cell_floating_changed()""",
}

_THERE = text("SELECT count(*) FROM pg_trigger WHERE tgname = ANY(CAST(:names AS text[]))")

_NOTE = text("""
    WITH noted AS (
        INSERT INTO compute_cell_changes (server_id) SELECT id FROM unnest(CAST(:ids AS uuid[])) AS s(id))
    SELECT pg_notify('climate_cells', 'changes')
""")

# Versions grow with the clock, so that reports are accepted also after the table was lost.
_VERSION = """
    INSERT INTO compute_cell_versions AS v (server_id, version)
    SELECT server_id, floor(extract(epoch FROM clock_timestamp()) * 1000000) FROM {source} ORDER BY server_id
    ON CONFLICT (server_id) DO UPDATE SET version = greatest(v.version + 1, excluded.version)
    RETURNING server_id, version, command, refusal
"""

_VERSIONS = text(_VERSION.format(source="unnest(CAST(:ids AS uuid[])) AS s(server_id)"))

_TAKE = text(f"""
    WITH taken AS (
        DELETE FROM compute_cell_changes WHERE id IN (
            SELECT id FROM compute_cell_changes ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED)
        RETURNING server_id, changed_at),
    changed AS (
        SELECT server_id, min(changed_at) AS changed_at FROM taken GROUP BY server_id),
    versions AS (
        {_VERSION.format(source="changed")})
    SELECT server_id, c.changed_at, v.version, v.command, v.refusal
    FROM versions v JOIN changed c USING (server_id) ORDER BY server_id
""")

_SERVERS = text(f"SELECT {COLUMNS} {FROM} WHERE s.id = ANY(CAST(:ids AS uuid[])) ORDER BY s.id")

_RECENT = text("""
    SELECT id::text FROM compute_servers
    WHERE (:everything OR updated_at >= :since) AND (CAST(:project_id AS text) IS NULL OR project_id = :project_id)
    UNION SELECT server_id::text FROM compute_cell_versions
    WHERE CAST(:deleted AS boolean) AND gone_at IS NOT NULL AND (:everything OR gone_at >= :since)
    ORDER BY 1
""")


def is_tracked(conn: Connection) -> bool:
    """Return whether triggers record the changes of servers in this database."""
    return bool(conn.execute(_THERE, {"names": list(TRIGGERS)}).scalar_one() == len(TRIGGERS))


def track(conn: Connection) -> None:
    """Create the triggers, and record all existing servers and the remembered deleted ones."""
    for name, what in TRIGGERS.items():
        conn.execute(text(f"CREATE OR REPLACE TRIGGER {name} {what}"))
    conn.execute(insert(cell_changes).from_select(["server_id"], select(servers.c.id)))
    gone = select(cell_versions.c.server_id).where(~exists().where(servers.c.id == cell_versions.c.server_id))
    conn.execute(insert(cell_changes).from_select(["server_id"], gone))


def untrack(conn: Connection) -> None:
    """Drop the triggers, and delete the recorded changes."""
    for name, what in TRIGGERS.items():
        table = what.split(" ON ")[1].split()[0]
        conn.execute(text(f"DROP TRIGGER IF EXISTS {name} ON {table}"))
    conn.execute(delete(cell_changes))


def note(conn: Connection, ids: Sequence[str]) -> None:
    """Record changes of these servers, so that they are reported."""
    conn.execute(_NOTE, {"ids": list(ids)})


def take(conn: Connection, most: int) -> tuple[dict[str, datetime], dict[str, Version]]:
    """Take up to `most` changes: id of each server -> time of its first change in UTC; and `next_versions`."""
    rows = conn.execute(_TAKE, {"most": most}).all()
    return {str(row.server_id): row.changed_at for row in rows}, {str(row.server_id): _version(row) for row in rows}


def next_versions(conn: Connection, ids: Sequence[str]) -> dict[str, Version]:
    """Return id -> version, command, refusal for the next report of each server; the rows stay locked.

    Servers that are read afterwards are at least as new as every report of a lower version.
    """
    return {str(row.server_id): _version(row) for row in conn.execute(_VERSIONS, {"ids": sorted(ids)})}


def _version(row: Row[*tuple[object, ...]]) -> Version:
    return {"version": row.version, "command": row.command, "refusal": row.refusal}


def read(conn: Connection, ids: Sequence[str]) -> tuple[list[Server], set[str]]:
    """Return the existing servers of these ids, and the ids of those whose rows cannot be read."""
    there: list[Server] = []
    rows = {str(row["id"]): row for row in conn.execute(_SERVERS, {"ids": list(ids)}).mappings()}
    failed = one_by_one.each("report of servers", rows, lambda server_id: there.append(server_of(rows[server_id])))
    return there, set(failed)


def gone(conn: Connection, ids: Sequence[str], now: datetime) -> None:
    """Record that these servers are deleted."""
    conn.execute(update(cell_versions).where(in_array(cell_versions.c.server_id, ids)).values(gone_at=now))


def recent(
    conn: Connection, since: datetime | None, *, project_id: str | None = None, deleted: bool = True
) -> list[str]:
    """Return ids of servers changed since then (None: all), of a project if given, deleted ones included."""
    given = {"since": since, "everything": since is None, "project_id": project_id, "deleted": deleted}
    return list(conn.execute(_RECENT, given).scalars())


def forget(conn: Connection, before: datetime) -> int:
    """Delete a portion of the records of servers that were deleted before then; return their number."""
    return drop(conn, cell_versions, cell_versions.c.gone_at < before)


def last_command(conn: Connection, server_id: str) -> int:
    """Return the number of the last command for a server; locked, so that commands run one at a time."""
    this = cell_versions.c.server_id == server_id
    conn.execute(insert(cell_versions).values(server_id=server_id).on_conflict_do_nothing())
    return int(conn.execute(select(cell_versions.c.command).where(this).with_for_update()).scalar_one())


def acted(conn: Connection, server_id: str, command: int, refusal: str | None) -> None:
    """Record a command that was carried out, or the reason of its refusal."""
    this = update(cell_versions).where(cell_versions.c.server_id == server_id)
    conn.execute(this.values(command=command, refusal=refusal))


def waiting(conn: Connection, now: datetime) -> tuple[int, float]:
    """Return the number of changes that are not reported yet, and the age of the oldest in seconds."""
    number, first = conn.execute(select(func.count(), func.min(cell_changes.c.changed_at))).one()
    return number, (now - first).total_seconds() if first else 0.0
