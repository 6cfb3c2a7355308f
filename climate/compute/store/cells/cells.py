"""Neighbours in the tree of cells: their connections, and their last reports about themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, DateTime, bindparam, case, func, literal, or_, select
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_rows
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_into

from climate.compute.cells.models import Broker, Cell
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
_LINKS = select(
    *(cells.c.name, cells.c.is_parent, cells.c.username, cells.c.rpc_host, cells.c.rpc_port),
    *(cells.c.rpc_virtual_host, cells.c.sealed, cells.c.weight_offset, cells.c.weight_scale),
    *(cells.c.failures, cells.c.last_error),
).order_by(cells.c.name)

NO_REPORT: Mapping[str, object] = {"capabilities": {}, "capacities": {}, "offers": {}, "children": []}
"""Columns of a report from a neighbour that has made none."""

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

LONGEST_PAUSE = 30
"""Seconds between two attempts to reach a broker that has failed for a while."""

_PAUSE = func.least(LONGEST_PAUSE, 0.5 * func.power(2, func.least(cells.c.failures, 10)))


@dataclass(frozen=True, slots=True)
class Row:
    """A neighbour with sealed secrets."""

    cell: Cell
    sealed: str = field(repr=False)


def links(conn: Connection) -> list[Row]:
    """Return all neighbours by name, without their reports."""
    return [_row({**NO_REPORT, "last_seen": None, **row}) for row in conn.execute(_LINKS).mappings()]


def listed(conn: Connection) -> list[Row]:
    """Return all neighbours by name."""
    return [_row(row) for row in conn.execute(_ROWS).mappings()]


def named(conn: Connection, names: Sequence[str]) -> list[Row]:
    """Return the existing neighbours of these names."""
    return [_row(row) for row in conn.execute(_ROWS.where(in_array(cells.c.name, names))).mappings()]


def lock_shared(conn: Connection, name: str) -> bool:
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
    stays = cells.c.is_parent == row.cell.is_parent
    # A neighbour that moves to the other side of the tree loses its reports from the former side.
    reports = {name: case((stays, cells.c[name]), else_=literal(value, JSONB)) for name, value in NO_REPORT.items()}
    times = {name: case((stays, cells.c[name])) for name in ("last_seen", "reported_at")}
    values = _values(row) | reports | times | {"failures": 0, "last_error": None, "retry_at": None}
    conn.execute(update_rows(cells).where(cells.c.name == row.cell.name).values(values))
    notify(conn, NEIGHBOURS)


def delete(conn: Connection, name: str) -> bool:
    """Delete a neighbour and its pending messages; False if it does not exist."""
    notify(conn, NEIGHBOURS)
    return conn.execute(delete_from(cells).where(cells.c.name == name)).rowcount > 0


def store_report(
    conn: Connection, name: str, state: Mapping[str, object], reported_at: datetime, now: datetime
) -> bool:
    """Store the report of a child about itself; False if there is no such child, or a later report is stored."""
    parts = {key: state[key] for key in ("capabilities", "capacities", "offers", "children")}
    # A report older than the stored one changes nothing.
    is_newer = or_(cells.c.reported_at.is_(None), cells.c.reported_at < reported_at)
    statement = update_rows(cells).where(cells.c.name == name, ~cells.c.is_parent, is_newer)
    return conn.execute(statement.values(**parts, last_seen=now, reported_at=reported_at)).rowcount > 0


def record_message(conn: Connection, names: Sequence[str], now: datetime) -> None:
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
    pause = func.make_interval(0, 0, 0, 0, 0, 0, _PAUSE)
    values = {
        "failures": cells.c.failures + 1,
        "last_error": reason[:500],
        "retry_at": literal(now, DateTime(timezone=True)) + pause,
    }
    statement = update_rows(cells).where(cells.c.name == name).values(values)
    return int(conn.execute(statement.returning(cells.c.failures)).scalar() or 0)


def _values(row: Row) -> dict[str, object]:
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
