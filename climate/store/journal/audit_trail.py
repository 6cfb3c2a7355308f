"""The audit trail in the journal: changes are appended to it, and read page by page, newest first."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, String, and_, bindparam, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from climate.database.sql_arrays import in_array
from climate.domain.audit_trail import (
    DEFAULT_PROJECT,
    FACTS_OF,
    NEEDED,
    AuditFact,
    AuditKind,
    Change,
    HostRef,
    ObjectChanged,
    change_stream,
    describe,
)
from climate.domain.operator_facts import limits_stream, terms_stream
from climate.domain.policy import Caller
from climate.store.journal import fact_codec, journal
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import AUDITED
from climate.store.tables.leases import journal as table
from climate.whole_numbers import whole_number

_READ = (*(kind.__name__ for kind in get_args(AuditFact)), *(kind.__name__ for kind in NEEDED))
_BODY_KIND = table.c.body["kind"].astext
_AUTHOR = literal_column("journal.actor ->> 'user_id'", String)
"""As literal text: the planner uses the index of authors only for a literal expression."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, its author, and the time of its record. `position` orders all entries."""

    position: int
    recorded_at: datetime
    author: str
    author_project: str
    request_id: str
    change: Change


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Filter of entries (all conditions must hold), and the page before `marker`."""

    kind: AuditKind | None = None
    object_id: str | None = None
    author: str | None = None
    project_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    marker: int | None = None
    limit: int | None = None


def record(conn: Connection, author: Caller, change: ObjectChanged) -> None:
    """Append a change of an object to the journal, in the transaction of the change itself."""
    stream = change_stream(change.kind, change.object_id)
    journal.lock(conn, stream)
    journal.append_next(conn, author, [(stream, change)])


def listed(conn: Connection, wanted: AuditQuery) -> list[AuditEntry]:
    """Return entries, newest first, in two statements however many there are."""
    query = (
        select(table, hosts.c.id.label("host"), hosts.c.hypervisor_hostname.label("host_name"))
        .outerjoin(hosts, hosts.c.stream == table.c.stream)
        # As literal text: the planner uses the index of audited kinds only for a literal condition.
        .where(literal_column(AUDITED), *_conditions(wanted))
        .order_by(table.c.position.desc())
        .limit(wanted.limit)
    )
    rows = conn.execute(query).all()
    earlier = _earlier(conn, rows)
    return [_entry(row, earlier) for row in rows]


def _conditions(query: AuditQuery) -> list[ColumnElement[bool]]:
    asked: Sequence[tuple[object, Callable[[Any], ColumnElement[bool]]]] = (
        (query.kind, _of_kind),
        (query.object_id, _of_object),
        (query.author, lambda author: bindparam("author", author, String) == _AUTHOR),
        (query.project_id, _of_project),
        (query.since, lambda since: table.c.recorded_at >= since),
        (query.until, lambda until: table.c.recorded_at < until),
        (query.marker, lambda marker: table.c.position < marker),
    )
    return [condition(value) for value, condition in asked if value is not None]


def _of_kind(kind: AuditKind) -> ColumnElement[bool]:
    own = [fact.__name__ for fact in FACTS_OF.get(kind, ())]
    if own:
        return table.c.kind.in_(own)
    return and_(table.c.kind == ObjectChanged.__name__, str(kind) == _BODY_KIND)


def _of_object(object_id: str) -> ColumnElement[bool]:
    """Return the condition for the streams that an object of this id can have."""
    project = "" if object_id == DEFAULT_PROJECT else object_id
    streams = [limits_stream(project), terms_stream(object_id)]
    streams += [change_stream(kind, object_id) for kind in AuditKind if kind not in FACTS_OF]
    streams += [own] if (own := _uuid(object_id)) else []
    known = in_array(table.c.stream, streams)
    named = hosts.c.hypervisor_hostname == object_id
    if (number := whole_number(object_id)) is not None:
        named = or_(named, hosts.c.id == number)
    return or_(known, table.c.stream.in_(select(hosts.c.stream).where(named)))


def _of_project(project_id: str) -> ColumnElement[bool]:
    owner = "" if project_id == DEFAULT_PROJECT else project_id
    belongs: ColumnElement[bool] = table.c.body["project_id"].astext == owner
    return belongs


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


Earlier = Mapping[UUID, Sequence[tuple[int, object]]]
"""Maps a stream to versions and facts."""


def _earlier(conn: Connection, rows: Collection[Any]) -> Earlier:
    """Return the facts from which former states are folded; ObjectChanged contains its own."""
    streams = sorted({row.stream for row in rows if row.kind != ObjectChanged.__name__})
    kinds = bindparam("kinds", list(_READ), type_=ARRAY(String))
    query = (
        select(table.c.stream, table.c.version, table.c.kind, table.c.body)
        .where(in_array(table.c.stream, streams))
        .where(table.c.kind == func.any(kinds))
        .order_by(table.c.stream, table.c.version)
    )
    result = conn.execute(query)
    return {
        stream: [(row.version, fact_codec.decode(row.kind, row.body)) for row in known]
        for stream, known in groupby(result, key=lambda row: row.stream)
    }


def _entry(row: Row[*tuple[object, ...]], earlier: Earlier) -> AuditEntry:
    before = [fact for version, fact in earlier.get(row.stream, ()) if version < row.version]
    host = None if row.host is None else HostRef(row.host, row.host_name)
    change = describe(row.stream, fact_codec.decode(row.kind, row.body), before, host)
    author, project = row.actor.get("user_id") or "", row.actor.get("project_id") or ""
    return AuditEntry(row.position, row.recorded_at, author, project, row.request_id, change)
