"""Differences between rows and the journal: each table compared in one statement for many streams."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, Uuid, bindparam, text

from climate.domain.audit_trail import ObjectChanged
from climate.domain.errors import ClimateError
from climate.domain.operator_facts import limits_stream, terms_stream
from climate.store.journal import fact_codec, journal
from climate.store.journal.journal import Entry
from climate.store.journal.projections import LIMITS, PROJECTIONS, TERMS, Projected, Projection, Row, Rows, of_fact

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
"""Bounds before all streams, and after them."""

UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, StopIteration, ClimateError)
"""Errors of facts that this release cannot read, or that do not fit together."""

WITHOUT_ROWS = (ObjectChanged,)
"""First facts of streams that only the audit trail reads; their tables are not projections."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs from the facts; without `said` the row is missing, without `known` it is in no fact."""

    stream: UUID
    projection: Projection
    projected: Projected
    key: Mapping[str, object]
    said: Mapping[str, Any] | None
    known: Mapping[str, Any] | None
    columns: tuple[str, ...] = ()
    """Columns that differ, of a row that exists."""

    @property
    def is_main(self) -> bool:
        """Return whether it is the main row, to which all others of the stream belong."""
        return self.projected is self.projection.tables[0] and self.projection.owner_type == "uuid"


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a stream itself, not in its rows."""

    stream: UUID
    what: str


@dataclass(frozen=True, slots=True)
class Compared:
    """Result of a comparison. `facts` is the number of facts read."""

    rows: tuple[RowDifference, ...] = ()
    faults: tuple[Fault, ...] = ()
    facts: int = 0


def compare(conn: Connection, streams: Sequence[UUID]) -> Compared:
    """Compare the rows of these streams with the projections of their facts; a few statements for any number.

    The transaction must have one snapshot, or hold the locks of the streams.
    """
    rows: dict[UUID, tuple[Projection, str, Rows]] = {}
    faults: list[Fault] = []
    count = 0
    for stream, known in _entries(conn, streams):
        if isinstance(known, Exception):
            faults.append(_unreadable(stream, known))
            continue
        count += len(known)
        if [entry.version for entry in known] != list(range(1, len(known) + 1)):
            faults.append(Fault(stream, "versions are not 1..n"))
        if isinstance(known[0].fact, WITHOUT_ROWS):
            continue
        try:
            projection = of_fact(known[0].fact)
            rows[stream] = projection, projection.owner(stream, known), projection.rows(stream, known)
        except UNREADABLE as error:
            faults.append(_unreadable(stream, error))
    return Compared(tuple(_differences(conn, rows)), tuple(faults), count)


def _differences(conn: Connection, rows: Mapping[UUID, tuple[Projection, str, Rows]]) -> Iterator[RowDifference]:
    """Compare the rows of streams with the tables, in a statement for each table."""
    for projection in PROJECTIONS:
        own = {stream: (owner, of) for stream, (sort, owner, of) in rows.items() if sort is projection}
        if own:
            for projected in projection.tables:
                yield from _differing(conn, projection, projected, own)


def _unreadable(stream: UUID, error: Exception) -> Fault:
    return Fault(stream, f"facts that this release cannot read: {type(error).__name__}: {error}")


def _entries(conn: Connection, streams: Sequence[UUID]) -> Iterator[tuple[UUID, list[Entry] | Exception]]:
    """Yield each stream that has a journal with its entries, or with the error of reading them."""
    try:
        result = journal.read_many(conn, streams)
    except UNREADABLE as error:
        if len(streams) == 1:
            yield streams[0], error
            return
        for stream in streams:
            yield from _entries(conn, [stream])
        return
    by_stream: dict[UUID, list[Entry]] = {}
    for entry in result:
        by_stream.setdefault(entry.stream, []).append(entry)
    yield from by_stream.items()


def without_journal(conn: Connection, after: UUID, last: UUID | None) -> list[tuple[UUID, Projection]]:
    """Return leases, hosts and maintenance windows after a stream, up to the last one, that have no journal."""
    given = {"after": after, "last": last or LAST}
    return [
        (stream, projection)
        for projection in PROJECTIONS
        if projection.owner_type == "uuid"
        for stream in conn.scalars(_ORPHANS[projection.name], given)
    ]


def sorts(conn: Connection, streams: Sequence[UUID]) -> dict[UUID, Projection]:
    """Return the sorts of streams; those without a journal, or that begin with an unknown fact, are missing."""
    kinds = journal.first_kinds(conn, streams)
    return {stream: _SORTS[kind] for stream, kind in kinds.items() if kind in _SORTS}


def decisions_without_journal(conn: Connection) -> list[tuple[UUID, Projection, str]]:
    """Return the streams and owners of decisions on pools and projects that have no journal."""
    values = [
        (stream_of(owner), projection, owner)
        for projection, stream_of in ((TERMS, terms_stream), (LIMITS, limits_stream))
        for owner in conn.scalars(_OWNERS[projection.name])
    ]
    known = journal.first_kinds(conn, [stream for stream, _, _ in values])
    return [value for value in values if value[0] not in known]


def _differing(
    conn: Connection, projection: Projection, projected: Projected, own: Mapping[UUID, tuple[str, Rows]]
) -> Iterator[RowDifference]:
    wanted: dict[tuple[str, ...], tuple[UUID, Row]] = {}
    for stream, (_, rows) in own.items():
        wanted |= {_key(projected, row): (stream, row) for row in rows[projected.table.name]}
    owners = {owner: stream for stream, (owner, _) in own.items()}
    given = {
        "wanted": json.dumps([fact_codec.encode(row) for _, row in wanted.values()], default=str),
        "owners": list(owners),
    }
    for row in conn.execute(_STATEMENTS[projection.name, projected.table.name], given):
        key = _key(projected, row.said or row.known)
        named = {name: (row.said or row.known)[name] for name in projected.key}
        if row.known is None:
            yield RowDifference(owners[row.said["owner_"]], projection, projected, named, row.said, None)
            continue
        stream, known = wanted[key]
        columns = tuple(_columns(row.said, row.known, known)) if row.said else ()
        if columns or row.said is None:
            yield RowDifference(stream, projection, projected, named, row.said, known, columns)


def _columns(said: Mapping[str, object], known: Mapping[str, object], projected: Mapping[str, object]) -> Iterator[str]:
    """Yield the columns that differ, among those that the facts determine."""
    return (name for name in known if name in projected and said[name] != known[name])


def _key(projected: Projected, row: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in projected.key)


def _statement(projected: Projected, owner_type: str) -> TextClause:
    """Return the query for rows that differ between table and parameter `wanted`, of streams or of their keys."""
    names = [f'"{name}"' for name in projected.columns]
    record = ", ".join(f'"{name}" {sql_type}' for name, (sql_type, _) in projected.columns.items())
    stored = ", ".join(f'{stored} AS "{name}"' for name, (_, stored) in projected.columns.items())
    table = f"SELECT {projected.owner} AS owner_, {stored} FROM {projected.table.name} t {projected.join}"  # noqa: S608
    key = ", ".join(f't."{name}"' for name in projected.key)
    keys = ", ".join(f'"{name}"' for name in projected.key)
    same = " AND ".join(f'said."{name}" = known."{name}"' for name in projected.key)
    rows = [", ".join(f"{which}.{name}" for name in names) for which in ("said", "known")]
    return text(f"""
        WITH known AS MATERIALIZED (SELECT * FROM jsonb_to_recordset(CAST(:wanted AS jsonb)) AS n ({record})),
        said AS MATERIALIZED (
            {table} WHERE {projected.owner} = ANY (CAST(:owners AS {owner_type}[]))
            UNION {table} WHERE ({key}) IN (SELECT {keys} FROM known))
        SELECT to_jsonb(said) AS said, to_jsonb(known) AS known
        FROM said FULL JOIN known ON {same}
        WHERE ROW({rows[0]}) IS DISTINCT FROM ROW({rows[1]})
    """)  # noqa: S608


_STATEMENTS: Mapping[tuple[str, str], TextClause] = {
    (projection.name, projected.table.name): _statement(projected, projection.owner_type)
    for projection in PROJECTIONS
    for projected in projection.tables
}
"""Statements by sort of stream and table, built once: a full comparison runs each of them for every batch."""


_SORTS = {kind.__name__: projection for projection in PROJECTIONS for kind in projection.facts}
_ORPHANS = {
    projection.name: text(f"""
        SELECT {main.owner} FROM {main.table.name} t
        WHERE {main.owner} > :after AND {main.owner} <= :last
        AND NOT EXISTS (SELECT FROM journal j WHERE j.stream = {main.owner})
    """)  # noqa: S608
    .bindparams(bindparam("after", type_=Uuid), bindparam("last", type_=Uuid))
    .columns(stream=Uuid)
    for projection in PROJECTIONS
    if projection.owner_type == "uuid"
    for main in projection.tables[:1]
}
_OWNERS = {
    projection.name: text(f"SELECT DISTINCT {main.owner} FROM {main.table.name} t")  # noqa: S608
    for projection in (TERMS, LIMITS)
    for main in projection.tables
}
