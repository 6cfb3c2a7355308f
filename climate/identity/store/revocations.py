"""What is no longer believed, as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select, text

from climate.identity.store.tables import revocations as table

TOKEN, USER, PROJECT, CREDENTIAL = "token", "user", "project", "credential"

Key = tuple[str, str]
"""Kind and subject."""

MOST_OF_A_USER = 1000
"""Revoked tokens and credentials of one user that are kept; with one more, all of his tokens are revoked instead."""

# What was not to be seen in a snapshot was written by a transaction that is no older than its xmin: for the index.
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


@dataclass(frozen=True, slots=True)
class Revocation:
    """No token that names the subject and was issued until then is believed."""

    key: Key
    owner: str | None
    """The user whose token or credential it is."""
    issued_before: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read at a moment, the snapshot in which, and the oldest transaction that it may have missed."""

    now: datetime
    seen: str
    xmin: int
    found: Sequence[Revocation]


def clock(conn: Connection) -> datetime:
    """Now, by the database's clock."""
    now: datetime = conn.execute(select(func.clock_timestamp())).scalar_one()
    return now


def add(conn: Connection, kind: str, subject: str, seconds: float, owner: str | None = None) -> None:
    """No token issued until now that names the subject is believed; kept for the longest life of a token.

    A user who has MOST_OF_A_USER of them in force gets one for all of his tokens instead.
    """
    now = func.clock_timestamp()
    conn.execute(delete(table).where(table.c.expires_at < now))
    if owner is not None:
        own = table.c.owner == owner
        if conn.execute(select(func.count()).where(own)).scalar_one() >= MOST_OF_A_USER:
            conn.execute(delete(table).where(own))
            kind, subject, owner = USER, owner, None
    row = {"kind": kind, "subject": subject, "owner": owner, "expires_at": now + timedelta(seconds=seconds)}
    conn.execute(insert(table).values(row))


def read(conn: Connection, seen: str | None = None) -> Reading:
    """The revocations in force, or those that were not to be seen in the snapshot `seen`; one statement."""
    rows = conn.execute(_UNSEEN, {"seen": seen}).all() if seen else conn.execute(_ALL).all()
    found = [
        Revocation((row.kind, row.subject), row.owner, row.issued_before, row.expires_at)
        for row in rows
        if row.kind is not None
    ]
    return Reading(rows[0].now, rows[0].seen, int(rows[0].xmin), found)
