"""Power settings and power states of hosts."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, text, true, update
from sqlalchemy.dialects.postgresql import insert

from climate.database.sql_arrays import in_array
from climate.store import locks
from climate.store.leases.event_claims import next_token
from climate.store.tables.hosts import host_power, hosts
from climate.store.tables.leases import allocations, in_force

MOST_FAILURES = 1000
"""Maximum of the counter of failures."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Power settings of a host, the requested state, and the last observed one."""

    host: int
    driver: str
    settings: Mapping[str, object]
    created_at: datetime
    secrets: str = field(default="", repr=False)
    """Sealed secrets of the driver."""
    watts: int | None = None
    """Power in watts when the host is on and idle."""
    wanted: str | None = None
    wanted_at: datetime | None = None
    asked_at: datetime | None = None
    """Time of the last request to the supply."""
    state: str = "unknown"
    seen_at: datetime | None = None
    """Time of the last answer of the supply."""
    changed_at: datetime | None = None
    """Time of the last change of the power state."""
    used_at: datetime | None = None
    """Time at which the host was last in use in the reservation pool, as shared capacity."""
    failures: int = 0
    """Number of successive requests that the supply did not carry out."""
    error: str = ""
    updated_at: datetime | None = None
    token: int = 0
    """Token of the last power decision."""

    @property
    def since(self) -> datetime:
        """Return since when it has been in its state, as far as known."""
        return self.changed_at or self.created_at

    def is_as(self, other: "Supply | None") -> bool:
        """Return whether requested state and settings are equal."""
        columns = ("driver", "settings", "secrets", "wanted", "wanted_at", "updated_at")
        return other is not None and all(getattr(self, name) == getattr(other, name) for name in columns)


def managed(conn: Connection, numbers: Collection[int]) -> frozenset[int]:
    """Return those of the hosts with power management."""
    return frozenset(conn.scalars(select(host_power.c.host).where(host_power.c.host.in_(sorted(numbers)))))


def of(conn: Connection, numbers: Collection[int]) -> dict[int, Supply]:
    """Return the power rows of these hosts, by number; hosts without power management are missing."""
    if not numbers:
        return {}
    rows = conn.execute(select(host_power).where(in_array(host_power.c.host, sorted(numbers))))
    return {row.host: Supply(**row._mapping) for row in rows}


def listed(conn: Connection, marker: int = 0, limit: int | None = None) -> dict[int, Supply]:
    """Return the power rows of all registered hosts, in the order of their numbers."""
    query = (
        select(host_power)
        .join(hosts, hosts.c.id == host_power.c.host)
        .where(hosts.c.removed_at.is_(None), host_power.c.host > marker)
        .order_by(host_power.c.host)
        .limit(limit)
    )
    return {row.host: Supply(**row._mapping) for row in conn.execute(query)}


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of hosts with power management, by state."""

    managed: int
    off: int
    failing: int
    """Hosts whose supply does not carry out requests."""


def counted(conn: Connection) -> Counted:
    query = (
        select(func.count(), func.count().filter(~hosts.c.switched_on), func.count().filter(host_power.c.failures > 0))
        .select_from(host_power.join(hosts, hosts.c.id == host_power.c.host))
        .where(hosts.c.removed_at.is_(None))
    )
    return Counted(*conn.execute(query).one())


def store(conn: Connection, supply: Supply, now: datetime) -> Supply:
    """Store power settings of a host, and reset its former state except the time of creation."""
    row = {**_row(supply), "settings": dict(supply.settings), "token": next_token()}
    made = insert(host_power).values(row)
    renewed = {name: value for name, value in row.items() if name not in ("host", "created_at")}
    renewed |= {"updated_at": now, "token": made.excluded.token}
    statement = made.on_conflict_do_update(index_elements=["host"], set_=renewed)
    return Supply(**conn.execute(statement.returning(*host_power.c)).one()._mapping)


def clear(conn: Connection, host: int) -> bool:
    """Delete the power settings of a host; return whether it had any."""
    return conn.execute(delete(host_power).where(host_power.c.host == host)).rowcount > 0


def wish(conn: Connection, wanted: Mapping[int, str | None], now: datetime) -> None:
    """Set the requested state of hosts; None leaves them as they are."""
    _lock(conn, wanted)
    for state in set(wanted.values()):
        numbers = sorted(host for host, wish in wanted.items() if wish == state)
        fresh = {"wanted": state, "wanted_at": now, "asked_at": None, "failures": 0, "error": "", "token": next_token()}
        conn.execute(update(host_power).where(host_power.c.host.in_(numbers)).values(fresh))


def tokens(conn: Connection, numbers: Collection[int]) -> dict[int, int]:
    """Return the tokens of the last power decisions, by number; hosts without power management are missing."""
    query = select(host_power.c.host, host_power.c.token).where(host_power.c.host.in_(sorted(numbers)))
    return {row.host: row.token for row in conn.execute(query)}


def use(conn: Connection, numbers: Collection[int], now: datetime) -> None:
    """Record that these hosts were in use at that moment."""
    _lock(conn, numbers)
    conn.execute(update(host_power).where(host_power.c.host.in_(sorted(numbers))).values(used_at=now))


def note(conn: Connection, supplies: Iterable[Supply]) -> None:
    """Record observations and requests, in one statement for any number of hosts."""
    rows = [_row(replace(supply, failures=min(supply.failures, MOST_FAILURES))) for supply in supplies]
    if rows:
        _lock(conn, [row["host"] for row in rows])
        conn.execute(_NOTE, {"rows": json.dumps(rows, default=str)})


def _lock(conn: Connection, numbers: Collection[int]) -> None:
    """Lock power rows in order; an UPDATE would lock them in the order in which it finds them."""
    if numbers:
        rows = select(host_power.c.host).where(host_power.c.host.in_(sorted(numbers)))
        conn.execute(locks.ordered(rows, host_power.c.host))


def needs(conn: Connection, numbers: Collection[int]) -> dict[int, datetime]:
    """Return when each of the hosts is next needed; hosts without an allocation are missing.

    A maintenance window does not need a host to be on.
    """
    if not numbers:
        return {}
    a = allocations
    first = (
        select(func.lower(a.c.during).label("start"))
        .where(a.c.host == hosts.c.id, in_force(a), a.c.kind != "maintenance")
        .order_by(func.lower(a.c.during))
        .limit(1)
        .lateral("first")
    )
    query = select(hosts.c.id, first.c.start).join(first, true()).where(hosts.c.id.in_(sorted(numbers)))
    return {row.id: row.start for row in conn.execute(query)}


def _row(supply: Supply) -> dict[str, Any]:
    return {column.name: getattr(supply, column.name) for column in host_power.c if column.name != "settings"}


_SEEN = ("wanted", "wanted_at", "asked_at", "state", "seen_at", "changed_at", "used_at", "failures", "error")
_NOTE = text(
    f"UPDATE host_power p SET {', '.join(f'{name} = n.{name}' for name in _SEEN)} "  # noqa: S608
    "FROM jsonb_populate_recordset(NULL::host_power, CAST(:rows AS jsonb)) n WHERE p.host = n.host"
)
