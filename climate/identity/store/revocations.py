"""Revocations as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Text, delete, func, insert, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from climate.database.batch_delete import drop
from climate.identity.store.tables import revocations as table

TOKEN, USER, PROJECT, CREDENTIAL, ROLE = "token", "user", "project", "credential", "role"

SYSTEM = "system"
"""Stands for the system where another subject names a project; no project has that id."""

Key = tuple[str, str]
"""Kind and subject of a revocation."""

MOST_OF_A_USER = 1000
"""Maximum of revoked tokens and credentials of one user; with one more, all tokens of the user are revoked instead."""

# A row invisible to a snapshot was written by a transaction no older than its xmin; the index uses that.
_READ = """
    SELECT now.now, now.seen, pg_snapshot_xmin(CAST(now.seen AS pg_snapshot))::text AS xmin,
           r.kind, r.subject, r.owner, r.issued_before, r.expires_at
    FROM (SELECT clock_timestamp() AS now, pg_current_snapshot()::text AS seen) AS now
    LEFT JOIN identity_revocations r ON r.expires_at > now.now {unseen}
"""
_ALL = text(_READ.format(unseen=""))
_UNSEEN = text(
    _READ.format(
        unseen="""
            AND r.changed BETWEEN pg_snapshot_xmin(CAST(:seen AS pg_snapshot)) AND '18446744073709551615'
            AND NOT pg_visible_in_snapshot(r.changed, CAST(:seen AS pg_snapshot))"""
    )
)


def role_subject(user_id: str, project_id: str | None) -> str:
    """Return the subject of a revocation of a user's tokens for one project or, without one, for the system."""
    return f"{user_id} {SYSTEM if project_id is None else project_id}"


@dataclass(frozen=True, slots=True)
class Revocation:
    """Revokes all tokens that name the subject and were issued until then."""

    key: Key
    owner: str | None
    """The user whose token or credential it is."""
    issued_before: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """Time of a read, its snapshot, and the oldest transaction that it may have missed."""

    now: datetime
    seen: str
    xmin: int
    revocations: Sequence[Revocation]


def clock(conn: Connection) -> datetime:
    """Return the present time of the database's clock."""
    now: datetime = conn.execute(select(func.clock_timestamp())).scalar_one()
    return now


def add(conn: Connection, kind: str, subject: str, seconds: float, owner: str | None = None) -> None:
    """Revoke all tokens issued until now that name the subject; keep this for the longest lifetime of a token.

    A user with MOST_OF_A_USER revocations in force gets one for all tokens instead.
    """
    now = func.clock_timestamp()
    drop(conn, table, table.c.expires_at < now)
    if owner is not None:
        own = table.c.owner == owner
        if conn.execute(select(func.count()).where(own, table.c.expires_at >= now)).scalar_one() >= MOST_OF_A_USER:
            conn.execute(delete(table).where(own))
            kind, subject, owner = USER, owner, None
    row = {"kind": kind, "subject": subject, "owner": owner, "expires_at": now + timedelta(seconds=seconds)}
    conn.execute(insert(table).values(row))


def add_all(conn: Connection, kind: str, subjects: Sequence[str], seconds: float) -> None:
    """Revoke all tokens issued until now that name one of the subjects; keep this for that many seconds."""
    each = func.unnest(literal(list(subjects), ARRAY(Text)))
    rows = select(literal(kind), each, func.clock_timestamp() + timedelta(seconds=seconds))
    conn.execute(insert(table).from_select(["kind", "subject", "expires_at"], rows))


def read(conn: Connection, seen: str | None = None) -> Reading:
    """Return the revocations in force, or those invisible to the snapshot `seen`, in one statement."""
    rows = conn.execute(_UNSEEN, {"seen": seen}).all() if seen else conn.execute(_ALL).all()
    result = [
        Revocation((row.kind, row.subject), row.owner, row.issued_before, row.expires_at)
        for row in rows
        if row.kind is not None
    ]
    return Reading(rows[0].now, rows[0].seen, int(rows[0].xmin), result)
