"""Projections of the journal: the tables of each sort of stream, and the expected value of every column.

A column that the facts of a stream do not determine is left out of its row, and is not compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args
from uuid import UUID

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql

from climate.domain.events import share_transitions
from climate.domain.events.event import Event
from climate.domain.facts import (
    Fact,
    HostDescribed,
    HostEnrolled,
    HostFact,
    HostPowerCleared,
    HostPowerSet,
    HostRemoved,
)
from climate.domain.hosts import folded_host, maintenance_facts, pools
from climate.domain.hosts.maintenance_facts import WindowFact
from climate.domain.lease import Lease, fold
from climate.domain.operator_facts import LimitsSet, PoolTermsSet, decided
from climate.domain.planning import series as series_facts
from climate.domain.planning.series import SeriesFact
from climate.domain.status import EventStatus
from climate.store.hosts import maintenance, pool_membership, pool_settings
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import rows as lease_rows
from climate.store.leases import series as stored_series
from climate.store.tables.hosts import host_power, hosts, pool_terms
from climate.store.tables.hosts import windows as maintenance_windows
from climate.store.tables.leases import allocations, claims
from climate.store.tables.limits_and_notices import limits
from climate.store.tables.series import lease_series

Row = dict[str, object]
Rows = Mapping[str, Sequence[Row]]
"""Rows by table name."""

MIGRATIONS = ("climate:migrate", "climate:migration")
"""Authors of facts that migrations wrote for earlier decisions; their times differ from those of the rows."""


@dataclass(frozen=True, slots=True)
class Projected:
    """Rows of a table that belong to streams of one sort.

    `owner` is the SQL of the value that a stream's rows have in common, with `t` as the table.
    """

    table: Table
    key: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]
    """Type of each column, and the SQL of its stored value."""
    owner: str
    join: str = ""


@dataclass(frozen=True, slots=True)
class Projection:
    """A sort of streams: the facts that begin them, their tables with the main one first, and their rows."""

    name: str
    facts: tuple[type, ...]
    tables: tuple[Projected, ...]
    rows: Callable[[UUID, Sequence[Entry]], Rows]
    owner: Callable[[UUID, Sequence[Entry]], str] = lambda stream, known: str(stream)
    owner_type: str = "uuid"


def of_fact(fact: object) -> "Projection":
    """Return the sort of stream of a fact. Raise ValueError for a fact without rows of its own."""
    for projection in PROJECTIONS:
        if isinstance(fact, projection.facts):
            return projection
    raise ValueError(f"no table has rows of streams that begin with {type(fact).__name__}")


def claims_of(lease: Lease) -> list[tuple[Event, int, str | None]]:
    """Return the claims of a lease: the event, the token, and the share's resource type, None for the whole event."""
    running = [event for event in lease.events if event.status is EventStatus.IN_PROGRESS]
    return [claim for event in running for claim in _claims(lease, event)]


def _claims(lease: Lease, event: Event) -> list[tuple[Event, int, str | None]]:
    types = share_transitions.pending_types(lease, event)
    under_way = [(event, share.token, share.resource_type) for share in event.shares if share.resource_type in types]
    return [*under_way] or [(event, event.token, None)]


def _lease_rows(_: UUID, known: Sequence[Entry]) -> Rows:
    lease = fold(journal.of_lease(known))
    rows = lease_rows.rows_of(lease)
    spelled = {(r.id, hold.number): hold.address for r in lease.reservations for hold in r.addresses}
    for row in rows["floating_allocations"]:
        row["address"] = spelled[row["reservation_id"], row["number"]]
    for row in rows["allocations"]:
        row["window_id"] = None
    claimed = [{"event_id": event.id, "token": token} for event, token, _ in claims_of(lease)]
    return {**rows, "claims": claimed}


def _host_rows(stream: UUID, known: Sequence[Entry]) -> Rows:
    facts = journal.of_host(known)
    place, care = pools.fold(facts, stream), folded_host.fold(facts)
    row = pool_membership.row_of(place) | {
        "stream": stream,
        "hypervisor_hostname": place.name,
        "extra": dict(care.extra),
        "created_at": facts[0].at,
        "removed_at": next((fact.at for fact in facts if isinstance(fact, HostRemoved)), None),
        **_described_at(known),
    }
    return {"hosts": [row], "host_power": _power_rows(place.host, known)}


def _described_at(known: Sequence[Entry]) -> Row:
    """Return the last change of the capabilities, if facts record it: the first hosts had no capabilities."""
    described = [entry for entry in known if isinstance(entry.fact, HostDescribed)]
    if described:
        return {} if _is_migrated(described[-1]) else {"updated_at": described[-1].fact.at}
    first = known[0].fact
    is_told = isinstance(first, HostEnrolled) and first.extra is not None
    return {"updated_at": None} if is_told else {}


def _power_rows(host: int, known: Sequence[Entry]) -> list[Row]:
    settings: list[Entry] = []
    for entry in known:
        if isinstance(entry.fact, HostPowerCleared):
            settings = []
        elif isinstance(entry.fact, HostPowerSet):
            settings.append(entry)
    if not settings or not isinstance(last := settings[-1].fact, HostPowerSet):
        return []
    row = {"host": host, "driver": last.driver, "settings": dict(last.settings), "watts": last.watts}
    row |= {"secrets": last.secrets}
    if not _is_migrated(settings[0]):
        row |= {"created_at": settings[0].fact.at}
        row |= {"updated_at": last.at if len(settings) > 1 else None}
    return [row]


def _window_rows(stream: UUID, known: Sequence[Entry]) -> Rows:
    standing, first, last = maintenance_facts.fold(journal.of_window(known)), known[0], known[-1]
    row = maintenance.row_of(stream, standing) | {
        "created_by": str(first.actor.get("user_id", "")),
        "created_at": first.fact.at,
    }
    if len(known) > 1:
        row |= {} if _is_migrated(last) else {"updated_at": last.fact.at}
    elif first.actor.get("project_id"):  # otherwise the migration wrote it, in the name of the planner
        row |= {"updated_at": None}
    allocation = maintenance.allocation_of(stream, standing) | {"preemptible": False}
    return {"maintenance_windows": [row], "allocations": [allocation]}


def _series_rows(_: UUID, known: Sequence[Entry]) -> Rows:
    return {"lease_series": [stored_series.row_of(series_facts.fold(journal.of_series(known)))]}


def _terms_rows(_: UUID, known: Sequence[Entry]) -> Rows:
    settings = decided(journal.of_operators(known))
    row = {"pool": _pool(known), "updated_at": known[-1].fact.at}
    return {"pool_terms": [row | {name: settings.get(name) for name in pool_settings.NAMES}]}


def _limits_rows(_: UUID, known: Sequence[Entry]) -> Rows:
    rows = []
    for name, value in decided(journal.of_operators(known)).items():
        last = next(e for e in reversed(known) if isinstance(e.fact, LimitsSet) and name in e.fact.limits)
        when = {} if _is_migrated(last) else {"updated_at": last.fact.at}
        rows.append({"project_id": _project(known), "name": name, "value": value, **when})
    return {"limits": rows}


def _pool(known: Sequence[Entry]) -> str:
    return next(entry.fact.pool for entry in known if isinstance(entry.fact, PoolTermsSet))


def _project(known: Sequence[Entry]) -> str:
    return next(entry.fact.project_id for entry in known if isinstance(entry.fact, LimitsSet))


def _is_migrated(entry: Entry) -> bool:
    return entry.actor.get("user_id") in MIGRATIONS


_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def _columns(table: Table, names: Sequence[str] = (), **more: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """Return the columns that a writer sets: those of the names, or all except the generated ones."""
    known = [column for column in table.columns if column.name in names or (not names and column.identity is None)]
    return {c.name: (c.type.compile(dialect=_DIALECT), f't."{c.name}"') for c in known} | more


OF_RESERVATION = "JOIN reservations r ON r.id = t.reservation_id"
OF_EVENT = "JOIN events e ON e.id = t.event_id"
_OF_A_LEASE: Mapping[str, tuple[str, str]] = {
    "leases": ("t.id", ""),
    "reservations": ("t.lease_id", ""),
    "events": ("t.lease_id", ""),
    "allocations": ("r.lease_id", OF_RESERVATION),
    "floating_allocations": ("r.lease_id", f"{OF_RESERVATION} JOIN floating_ips f ON f.number = t.number"),
    "inventory_allocations": ("r.lease_id", OF_RESERVATION),
}
_MORE: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "floating_allocations": {"address": ("text", "host(f.address)")},
}
PLACE = (
    *(
        "id",
        "stream",
        "hypervisor_hostname",
        "pool",
        "pool_since",
        "pool_reason",
        "pool_cause",
        "pool_token",
        "pool_reservation",
    ),
    *("pool_until", "home", "reservable", "switched_on", "version", "extra", "created_at", "updated_at", "removed_at"),
)
"""Columns of hosts that facts determine; the others come from the cloud or belong to rounds."""

POWER = ("host", "driver", "settings", "watts", "created_at", "updated_at")
"""Columns of host power that facts determine; the others are observations and requests."""

LEASE = Projection(
    "lease",
    get_args(Fact),
    (
        *(
            Projected(table, key, _columns(table, **_MORE.get(table.name, {})), *_OF_A_LEASE[table.name])
            for table, key, _ in lease_rows.PARTS
        ),
        Projected(claims, ("event_id", "token"), _columns(claims, ("event_id", "token")), "e.lease_id", OF_EVENT),
    ),
    _lease_rows,
)
HOST = Projection(
    "host",
    get_args(HostFact),
    (
        Projected(hosts, ("id",), _columns(hosts, PLACE), "t.stream"),
        Projected(
            host_power,
            ("host",),
            _columns(host_power, POWER, secrets=("boolean", "t.secrets <> ''")),
            "h.stream",
            "JOIN hosts h ON h.id = t.host",
        ),
    ),
    _host_rows,
)
WINDOW = Projection(
    "maintenance window",
    get_args(WindowFact),
    (
        Projected(maintenance_windows, ("id",), _columns(maintenance_windows), "t.id"),
        Projected(allocations, ("window_id",), _columns(allocations), "t.window_id"),
    ),
    _window_rows,
)
TERMS = Projection(
    "pool",
    (PoolTermsSet,),
    (Projected(pool_terms, ("pool",), _columns(pool_terms), "t.pool"),),
    _terms_rows,
    lambda _, known: _pool(known),
    "text",
)
LIMITS = Projection(
    "limits",
    (LimitsSet,),
    (Projected(limits, ("project_id", "name"), _columns(limits), "t.project_id"),),
    _limits_rows,
    lambda _, known: _project(known),
    "text",
)
SERIES = Projection(
    "series",
    get_args(SeriesFact),
    (Projected(lease_series, ("id",), _columns(lease_series), "t.id"),),
    _series_rows,
)
PROJECTIONS = (LEASE, HOST, WINDOW, TERMS, LIMITS, SERIES)
