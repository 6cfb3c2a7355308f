"""The append-only record of facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError

from climate.domain.errors import Conflict
from climate.domain.facts import Fact
from climate.domain.policy import Caller
from climate.store import codec
from climate.store.lease_rows import as_json, from_json
from climate.store.tables import journal

_APPEND = text(from_json(journal, ("stream", "version", "kind", "body", "actor", "request_id")))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal."""

    stream: UUID
    version: int
    fact: Fact
    actor: dict[str, Any]
    request_id: str
    recorded_at: datetime


def append(conn: Connection, facts: Sequence[tuple[UUID, int, Fact]], author: Caller) -> None:
    """Append facts, each with its stream and version; Conflict if someone was quicker."""
    actor = {"user_id": author.user_id, "project_id": author.project_id}
    rows = [
        {
            "stream": stream,
            "version": version,
            "kind": type(fact).__name__,
            "body": codec.encode(fact),
            "actor": actor,
            "request_id": author.request_id,
        }
        for stream, version, fact in facts
    ]
    try:
        conn.execute(_APPEND, {journal.name: as_json(rows)})
    except IntegrityError as error:
        raise Conflict("Someone else changed the lease at the same moment") from error


def read(conn: Connection, stream: UUID) -> list[Entry]:
    """All that happened to one lease, oldest first."""
    found = conn.execute(select(journal).where(journal.c.stream == stream).order_by(journal.c.version))
    return [_entry(row) for row in found]


def read_all(conn: Connection) -> Iterator[Entry]:
    """Every stream one after the other, each oldest first; read in portions, so of any size."""
    ordered = select(journal).order_by(journal.c.stream, journal.c.version)
    for row in conn.execute(ordered, execution_options={"yield_per": 1000}):
        yield _entry(row)


def _entry(row: Any) -> Entry:
    fact = codec.decode(row.kind, row.body)
    return Entry(row.stream, row.version, fact, row.actor, row.request_id, row.recorded_at)
