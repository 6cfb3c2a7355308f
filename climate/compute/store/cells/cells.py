"""Neighbours in the tree of cells: their connections, and their last reports about themselves."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.cells.cell import Broker, Cell
from climate.compute.store.cells.messages import NEIGHBOURS, notify

_ROWS = """
    SELECT name, is_parent, username, rpc_host, rpc_port, rpc_virtual_host, sealed, weight_offset, weight_scale,
           capabilities, capacities, offers, children, last_seen, failures, last_error
    FROM compute_cells
"""

_ALL = text(f"{_ROWS} ORDER BY name")

_NAMED = text(f"{_ROWS} WHERE name = ANY(CAST(:names AS text[])) ORDER BY name")

# Without the reports, which may be long.
_LINKS = text("""
    SELECT name, is_parent, username, rpc_host, rpc_port, rpc_virtual_host, sealed, weight_offset, weight_scale,
           '{}'::jsonb AS capabilities, '{}'::jsonb AS capacities, '{}'::jsonb AS offers, '[]'::jsonb AS children,
           NULL::timestamptz AS last_seen, failures, last_error
    FROM compute_cells ORDER BY name
""")

_INSERT = text("""
    INSERT INTO compute_cells (name, is_parent, username, rpc_host, rpc_port, rpc_virtual_host, sealed,
                               weight_offset, weight_scale)
    VALUES (:name, :is_parent, :username, :rpc_host, :rpc_port, :rpc_virtual_host, :sealed,
            :weight_offset, :weight_scale)
    ON CONFLICT (name) DO NOTHING RETURNING name
""")

_LOCK = text("SELECT name FROM compute_cells WHERE name = :name FOR UPDATE")

_KEEP = text("SELECT name FROM compute_cells WHERE name = :name FOR KEY SHARE")

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

_DELETE = text("DELETE FROM compute_cells WHERE name = :name")

# A report older than the stored one changes nothing.
_TOLD = text("""
    UPDATE compute_cells
    SET capabilities = CAST(:capabilities AS jsonb), capacities = CAST(:capacities AS jsonb),
        offers = CAST(:offers AS jsonb), children = CAST(:children AS jsonb),
        last_seen = :now, reported_at = :reported_at
    WHERE name = :name AND NOT is_parent AND (reported_at IS NULL OR reported_at < :reported_at)
""")

# Most messages arrive within a second of the one before, and need not write the row again.
_SEEN = text("""
    UPDATE compute_cells SET last_seen = :now
    WHERE name = ANY(CAST(:names AS text[])) AND is_parent
      AND (last_seen IS NULL OR last_seen < CAST(:now AS timestamptz) - interval '1 second')
""")

_REACHED = text("""
    UPDATE compute_cells SET failures = 0, last_error = NULL, retry_at = NULL WHERE name = :name AND failures > 0
""")

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
    return [_row(row) for row in conn.execute(_ALL).mappings()]


def named(conn: Connection, names: Sequence[str]) -> list[Row]:
    """Return the existing neighbours of these names."""
    return [_row(row) for row in conn.execute(_NAMED, {"names": list(names)}).mappings()]


def keep(conn: Connection, name: str) -> bool:
    """Prevent the deletion of a neighbour until the transaction ends; False if it does not exist."""
    return conn.execute(_KEEP, {"name": name}).scalar() is not None


def insert(conn: Connection, row: Row) -> bool:
    """Insert a neighbour; False if its name is taken."""
    made = conn.execute(_INSERT, _values(row)).scalar() is not None
    notify(conn, NEIGHBOURS)
    return made


def lock(conn: Connection, name: str) -> Row | None:
    """Return a neighbour with its row locked; None if it does not exist."""
    conn.execute(_LOCK, {"name": name})
    return next(iter(named(conn, [name])), None)


def update(conn: Connection, row: Row) -> None:
    """Update the connection, the weights and the side of a neighbour."""
    conn.execute(_UPDATE, _values(row))
    notify(conn, NEIGHBOURS)


def delete(conn: Connection, name: str) -> bool:
    """Delete a neighbour and its pending messages; False if it does not exist."""
    notify(conn, NEIGHBOURS)
    return conn.execute(_DELETE, {"name": name}).rowcount > 0


def told(conn: Connection, name: str, state: Mapping[str, Any], reported_at: datetime, now: datetime) -> bool:
    """Store the report of a child about itself; False if there is no such child, or a later report is stored."""
    parts = {key: json.dumps(state[key]) for key in ("capabilities", "capacities", "offers", "children")}
    return conn.execute(_TOLD, {"name": name, "reported_at": reported_at, "now": now, **parts}).rowcount > 0


def seen(conn: Connection, names: Sequence[str], now: datetime) -> None:
    """Record a message from these parents; a child proves that it is alive by its reports."""
    conn.execute(_SEEN, {"names": list(names), "now": now})


def reached(conn: Connection, name: str) -> None:
    """Record that the broker of a neighbour accepts messages."""
    conn.execute(_REACHED, {"name": name})
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
