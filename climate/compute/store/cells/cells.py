"""Neighbours in the tree of cells: their connections, and their last reports about themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, text
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_rows
from sqlalchemy.dialects.postgresql import insert as insert_into

from climate.compute.cells.cell import Broker, Cell
from climate.compute.store.cells.messages import NEIGHBOURS, notify
from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.tables.cells import cells

_ROWS = select(
    *(
        cells.c[name]
        for name in (
            *("name", "is_parent", "username", "rpc_host", "rpc_port", "rpc_virtual_host", "sealed", "weight_offset"),
            *(
                "weight_scale",
                "capabilities",
                "capacities",
                "offers",
                "children",
                "last_seen",
                "failures",
                "last_error",
            ),
        )
    )
).order_by(cells.c.name)

# Without the reports, which may be long.
_LINKS = text("""
    SELECT name, is_parent, username, rpc_host, rpc_port, rpc_virtual_host, sealed, weight_offset, weight_scale,
           '{}'::jsonb AS capabilities, '{}'::jsonb AS capacities, '{}'::jsonb AS offers, '[]'::jsonb AS children,
           NULL::timestamptz AS last_seen, failures, last_error
    FROM compute_cells ORDER BY name
""")

# A neighbour that moves to the other side of the tree loses its reports from the former side.
_UPDATE = text("""
    UPDATE compute_cells
    SET username = :username, rpc_host = :rpc_host, rpc_port = :rpc_port, rpc_virtual_host = :rpc_virtual_host,
        sealed = :sealed, weight_offset = :weight_offset, weight_scale = :weight_scale, is_parent = :is_parent,
        failures = 0, last_error = NULL, retry_at = NULL,
        capabilities = CASE WHEN is_parent = :is_parent THEN capabilities ELSE '{}'::jsonb END,
        capacities = CASE WHEN is_parent = :is_parent THEN capacities ELSE '{}'::jsonb END,
        offers = CASE WHEN is_parent = :is_parent THEN offers ELSE '{}'::jsonb END,
        children = CASE WHEN is_parent = :is_parent THEN children ELSE '[]'::jsonb END,
        last_seen = CASE WHEN is_parent = :is_parent THEN last_seen END,
        reported_at = CASE WHEN is_parent = :is_parent THEN reported_at END
    WHERE name = :name
""")

# Most messages arrive within a second of the one before, and need not write the row again.
_SEEN = (
    update_rows(cells)
    .where(
        in_parameter(cells.c.name, "names"),
        cells.c.is_parent,
        or_(cells.c.last_seen.is_(None), cells.c.last_seen < bindparam("before")),
    )
    .values(last_seen=bindparam("now"))
)

_FAILED = text("""
    UPDATE compute_cells
    SET failures = failures + 1, last_error = left(:reason, 500),
        retry_at = CAST(:now AS timestamptz) + make_interval(secs => least(30, 0.5 * power(2, least(failures, 10))))
    WHERE name = :name
    RETURNING failures
""")


@dataclass(frozen=True, slots=True)
class Row:
    """A neighbour with sealed secrets."""

    cell: Cell
    sealed: str = field(repr=False)


def links(conn: Connection) -> list[Row]:
    """Return all neighbours by name, without their reports."""
    return [_row(row) for row in conn.execute(_LINKS).mappings()]


def listed(conn: Connection) -> list[Row]:
    """Return all neighbours by name."""
    return [_row(row) for row in conn.execute(_ROWS).mappings()]


def named(conn: Connection, names: Sequence[str]) -> list[Row]:
    """Return the existing neighbours of these names."""
    return [_row(row) for row in conn.execute(_ROWS.where(in_array(cells.c.name, names))).mappings()]


def keep(conn: Connection, name: str) -> bool:
    """Prevent the deletion of a neighbour until the transaction ends; False if it does not exist."""
    row = select(cells.c.name).where(cells.c.name == name)
    return conn.scalar(row.with_for_update(read=True, key_share=True)) is not None


def insert(conn: Connection, row: Row) -> bool:
    """Insert a neighbour; False if its name is taken."""
    made = (
        conn.scalar(insert_into(cells).values(_values(row)).on_conflict_do_nothing().returning(cells.c.name))
        is not None
    )
    notify(conn, NEIGHBOURS)
    return made


def lock(conn: Connection, name: str) -> Row | None:
    """Return a neighbour with its row locked; None if it does not exist."""
    conn.execute(select(cells.c.name).where(cells.c.name == name).with_for_update())
    return next(iter(named(conn, [name])), None)


def update(conn: Connection, row: Row) -> None:
    """Update the connection, the weights and the side of a neighbour."""
    conn.execute(_UPDATE, _values(row))
    notify(conn, NEIGHBOURS)


def delete(conn: Connection, name: str) -> bool:
    """Delete a neighbour and its pending messages; False if it does not exist."""
    notify(conn, NEIGHBOURS)
    return conn.execute(delete_from(cells).where(cells.c.name == name)).rowcount > 0


def store_report(conn: Connection, name: str, state: Mapping[str, Any], reported_at: datetime, now: datetime) -> bool:
    """Store the report of a child about itself; False if there is no such child, or a later report is stored."""
    parts = {key: state[key] for key in ("capabilities", "capacities", "offers", "children")}
    # A report older than the stored one changes nothing.
    is_newer = or_(cells.c.reported_at.is_(None), cells.c.reported_at < reported_at)
    statement = update_rows(cells).where(cells.c.name == name, ~cells.c.is_parent, is_newer)
    return conn.execute(statement.values(**parts, last_seen=now, reported_at=reported_at)).rowcount > 0


def seen(conn: Connection, names: Sequence[str], now: datetime) -> None:
    """Record a message from these parents; a child proves that it is alive by its reports."""
    conn.execute(_SEEN, {"names": list(names), "now": now, "before": now - timedelta(seconds=1)})


def reached(conn: Connection, name: str) -> None:
    """Record that the broker of a neighbour accepts messages."""
    failing = update_rows(cells).where(cells.c.name == name, cells.c.failures > 0)
    conn.execute(failing.values(failures=0, last_error=None, retry_at=None))
    notify(conn, NEIGHBOURS)


def failed(conn: Connection, name: str, reason: str, now: datetime) -> int:
    """Record that the broker of a neighbour is unreachable, and the next attempt; return the failures in a row."""
    notify(conn, NEIGHBOURS)
    return int(conn.execute(_FAILED, {"name": name, "reason": reason, "now": now}).scalar() or 0)


def _values(row: Row) -> dict[str, Any]:
    cell, broker = row.cell, row.cell.broker
    return {
        "name": cell.name,
        "is_parent": cell.is_parent,
        "username": broker.username,
        "rpc_host": broker.host,
        "rpc_port": broker.port,
        "rpc_virtual_host": broker.virtual_host,
        "sealed": row.sealed,
        "weight_offset": cell.weight_offset,
        "weight_scale": cell.weight_scale,
    }


def _row(row: Any) -> Row:
    broker = Broker(row["rpc_host"], row["rpc_port"], row["username"], None, row["rpc_virtual_host"])
    cell = Cell(
        row["name"],
        row["is_parent"],
        broker,
        row["weight_offset"],
        row["weight_scale"],
        {key: tuple(values) for key, values in row["capabilities"].items()},
        row["capacities"],
        {key: tuple(values) for key, values in row["offers"].items()},
        tuple(row["children"]),
        row["last_seen"],
        row["failures"],
        row["last_error"],
    )
    return Row(cell, row["sealed"])
