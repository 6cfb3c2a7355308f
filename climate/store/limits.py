"""Limits of projects, and the usage of their leases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, TextClause, Uuid, bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import insert

from climate.database.advisory_locks import Subject
from climate.domain.facts import FOREVER
from climate.domain.limits import HoldingChange, Limit, Use
from climate.domain.operator_facts import LimitsSet, decided, limits_stream
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.domain.status import EventKind, LeaseStatus
from climate.store import locks
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import row_consistency
from climate.store.tables.leases import SUBLET
from climate.store.tables.limits_and_notices import limits

LONGEST_GRACE = timedelta(days=30)

DEFAULT = ""
"""Project id of the default limits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit of a project, or a default."""

    project_id: str
    limit: Limit
    value: int


def of(conn: Connection, project_id: str) -> dict[Limit, Rule]:
    """Return the effective limits of a project: its own override the defaults."""
    rows = conn.execute(
        select(limits).where(limits.c.project_id.in_([DEFAULT, project_id])).order_by(limits.c.project_id)
    )
    return {rule.limit: rule for rule in map(_rule, rows)}  # the default is the empty text, hence first


def everyones(conn: Connection) -> list[Rule]:
    """Return all limits of all projects."""
    return [_rule(row) for row in conn.execute(select(limits).order_by(limits.c.project_id, limits.c.name))]


def store(conn: Connection, author: Caller, project_id: str, values: Mapping[Limit, int | None], now: datetime) -> None:
    """Set limits of a project; None deletes one. Raise Tampered if the rows do not match the facts."""
    stream = limits_stream(project_id)
    known = journal.lock_stream(conn, stream)
    row_consistency.refuse_values(
        f"the limits of {project_id or 'all projects'}", _own(conn, project_id), _folded(known)
    )
    details = {str(limit): value for limit, value in values.items()}
    journal.append(conn, author, stream, known, LimitsSet(now, project_id, details))
    write(conn, project_id, details, now)


def drop(conn: Connection, author: Caller, project_id: str, now: datetime) -> int:
    """Delete all limits of a project; return their number."""
    present = {rule.limit: None for rule in everyones(conn) if rule.project_id == project_id}
    if present:
        store(conn, author, project_id, present, now)
    return len(present)


def write(conn: Connection, project_id: str, values: Mapping[str, object], now: datetime) -> None:
    """Write the rows of a project's limits."""
    unset = [name for name, value in values.items() if value is None]
    if unset:
        conn.execute(delete(limits).where(limits.c.project_id == project_id, limits.c.name.in_(unset)))
    rows = [
        {"project_id": project_id, "name": name, "value": value, "updated_at": now}
        for name, value in values.items()
        if value is not None
    ]
    if rows:
        store = insert(limits).values(rows)
        store = store.on_conflict_do_update(
            index_elements=["project_id", "name"],
            set_={"value": store.excluded.value, "updated_at": store.excluded.updated_at},
        )
        conn.execute(store)


def then(conn: Connection, project_id: str, at: datetime) -> dict[Limit, Rule]:
    """Return the limits of a project at that moment: its own override the defaults."""
    result: dict[Limit, Rule] = {}
    for owner in (DEFAULT, project_id):
        known = _folded(journal.until(journal.read(conn, limits_stream(owner)), at))
        result |= {Limit(name): Rule(owner, Limit(name), value) for name, value in known.items()}
    return result


def _own(conn: Connection, project_id: str) -> dict[str, object]:
    rows = conn.execute(select(limits).where(limits.c.project_id == project_id))
    return {row.name: row.value for row in rows}


def _folded(known: Sequence[Entry]) -> dict[str, Any]:
    return decided(journal.of_operators(known))


def one_at_a_time(conn: Connection, project_id: str) -> None:
    """Take the lock of allocations under limits of this project, until the transaction ends.

    It precedes leases, events and hosts in the order of locks.
    """
    locks.lock_object(conn, Subject.LIMITS, project_id)


# Literal day: ended leases are found by their end, so that old ones are not read.
OPEN = ", ".join(f"'{status}'" for status in LeaseStatus if status is not LeaseStatus.TERMINATED)
# Subqueries planned by themselves, hence read by the key of each lease.
END, START = (
    f"LATERAL (SELECT * FROM events WHERE lease_id = l.id AND kind = '{kind}' OFFSET 0) {name}"  # noqa: S608
    for kind, name in ((EventKind.END, "e"), (EventKind.START, "s"))
)
_USE = """
    WITH own AS MATERIALIZED (
        SELECT l.id, l.start_date AS start, e.due_at AS until, e.status <> 'DONE' AS stands, l.status = 'HELD' AS held,
            l.wait_until IS NOT NULL AS waits
        FROM leases l CROSS JOIN {END}
        WHERE l.project_id = :project_id AND NOT l.gone AND l.status IN ({OPEN}) AND l.id IS DISTINCT FROM :but
            AND l.parent IS NULL AND (e.status <> 'DONE' OR e.due_at > :from_)
        UNION ALL
        SELECT l.id, l.start_date, e.due_at, e.status <> 'DONE', false, false
        FROM leases l CROSS JOIN {END}
        WHERE l.project_id = :project_id AND NOT l.gone AND l.status = 'TERMINATED' AND l.id IS DISTINCT FROM :but
            AND l.parent IS NULL AND l.end_date > '{over_from}' AND e.due_at > :from_
        UNION ALL
        -- What was given up before anybody began to hand it over took nothing.
        SELECT l.id, l.start_date, e.due_at, false, false, false
        FROM leases l CROSS JOIN {END} CROSS JOIN {START}
        WHERE l.project_id = :project_id AND l.gone AND l.end_date > '{over_from}' AND e.due_at > :from_
            AND l.parent IS NULL AND s.token > 0),
    taken AS MATERIALIZED (
        SELECT o.id, o.start, o.until, r.id AS reservation_id, r.parts, r.sublets
        FROM own o JOIN reservations r ON r.lease_id = o.id
        WHERE o.until > o.start AND o.start < :until AND o.until > :from_),
    kept AS MATERIALIZED (
        SELECT reservation_id, during, amount FROM inventory_allocations
        WHERE state IN ('held', 'active') AND upper(during) >= :forever),
    held AS (
        SELECT t.start, t.until, count(*) FILTER (WHERE a.slots = 0 AND NOT a.preemptible) AS hosts,
            sum(a.slots) AS slots, 0 AS addresses, 0 AS storage_gb, count(*) FILTER (WHERE a.preemptible) AS preemptible
        FROM taken t JOIN allocations a USING (reservation_id)
        GROUP BY t.id, t.start, t.until
        UNION ALL
        SELECT t.start, t.until,
            sum(CASE WHEN (p ->> 'hosts')::int > 0 OR p ->> 'state' = 'released' THEN (p ->> 'hosts')::int
                ELSE (p ->> 'most')::int END), 0, 0, 0, 0
        FROM taken t CROSS JOIN LATERAL jsonb_array_elements(
            CASE jsonb_typeof(t.parts) WHEN 'array' THEN t.parts ELSE '[]' END) p
        WHERE t.parts <> '[]'
        GROUP BY t.id, t.start, t.until
        UNION ALL
        -- Hosts in sub-leases count as those of the parent.
        SELECT t.start, t.until, count(*), 0, 0, 0, 0
        FROM taken t CROSS JOIN LATERAL jsonb_array_elements(
            CASE jsonb_typeof(t.sublets) WHEN 'array' THEN t.sublets ELSE '[]' END) s
        WHERE t.{SUBLET} AND (s ->> 'taken')::boolean
        GROUP BY t.id, t.start, t.until
        UNION ALL
        SELECT t.start, t.until, 0, 0, count(*), 0, 0
        FROM taken t JOIN floating_allocations f USING (reservation_id)
        GROUP BY t.id, t.start, t.until
        UNION ALL
        SELECT t.start, t.until, 0, 0, 0, sum(f.amount), 0
        FROM taken t JOIN inventory_allocations f USING (reservation_id)
        WHERE upper(f.during) < :forever
        GROUP BY t.id, t.start, t.until
        UNION ALL
        -- What is kept outlasts its lease.
        SELECT lower(f.during), upper(f.during), 0, 0, 0, f.amount, 0
        FROM kept f JOIN reservations r ON r.id = f.reservation_id JOIN leases l ON l.id = r.lease_id
        WHERE l.project_id = :project_id AND l.id IS DISTINCT FROM :but),
    edges AS (
        SELECT at, sum(hosts) AS hosts, sum(slots) AS slots, sum(addresses) AS addresses, sum(storage_gb) AS storage_gb,
            sum(preemptible) AS preemptible
        FROM (
            SELECT start AS at, hosts, slots, addresses, storage_gb, preemptible FROM held
            UNION ALL SELECT until, -hosts, -slots, -addresses, -storage_gb, -preemptible FROM held) AS marks
        GROUP BY at)
    SELECT (SELECT count(*) FROM own WHERE stands) AS leases,
        (SELECT count(*) FROM own WHERE held) AS held_leases,
        (SELECT count(*) FROM own WHERE waits) AS waiting_leases,
        (SELECT coalesce(jsonb_agg(
            jsonb_build_array(at, hosts, slots, addresses, storage_gb, preemptible) ORDER BY at), '[]')
            FROM edges) AS edges
"""


@lru_cache(maxsize=100)
def _use_since(over_from: str) -> TextClause:
    """Return the statement for leases that ended after that day, as a literal.

    Plans are made without looking at bound values (climate.store.engine): with a bound day, all ended leases of a
    project would be read.
    """
    spelled = _USE.format(SUBLET=SUBLET, OPEN=OPEN, END=END, START=START, over_from=over_from)
    return text(spelled).bindparams(bindparam("but", type_=Uuid))


def use(conn: Connection, project_id: str, during: Period, but: UUID | None = None) -> Use:
    """Return the usage of a project's leases in that time, without the lease `but`, in one statement.

    Only the actual usage of leases that ended early counts, since deletion moves their end.
    """
    asked = {
        "project_id": project_id,
        "but": but,
        "from_": during.start,
        "until": during.end,
        "forever": FOREVER,
    }
    # Grace follows the dates of a lease. The literal is the beginning of a month: few days, hence few plans.
    over_from = (during.start - LONGEST_GRACE).astimezone(UTC).strftime("%Y-%m-01 00:00+00")
    row = conn.execute(_use_since(over_from), asked).one()
    edges = tuple(HoldingChange(datetime.fromisoformat(at), *counts) for at, *counts in row.edges)
    return Use(row.leases, edges, row.held_leases, row.waiting_leases)


def _rule(row: Row[*tuple[object, ...]]) -> Rule:
    return Rule(row.project_id, Limit(row.name), row.value)
