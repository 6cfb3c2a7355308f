"""What is no longer believed, as rows."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from climate.identity.store.tables import revocations as table

TOKEN, USER, PROJECT, CREDENTIAL = "token", "user", "project", "credential"

Key = tuple[str, str]
"""Kind and subject."""


def clock(conn: Connection) -> datetime:
    """Now, by the database's clock."""
    now: datetime = conn.execute(select(func.clock_timestamp())).scalar_one()
    return now


def add(conn: Connection, kind: str, subject: str, seconds: float) -> None:
    """No token issued until now that names the subject is believed; kept for the longest life of a token."""
    now = func.clock_timestamp()
    conn.execute(delete(table).where(table.c.expires_at < now))
    conn.execute(insert(table).values(kind=kind, subject=subject, expires_at=now + timedelta(seconds=seconds)))


def in_force(conn: Connection) -> tuple[datetime, Mapping[Key, datetime]]:
    """Now, and the moment before which tokens of each subject are not believed; one statement."""
    now = select(func.clock_timestamp().label("now")).subquery()
    last = func.max(table.c.issued_before).label("last")
    question = (
        select(now.c.now, table.c.kind, table.c.subject, last)
        .select_from(now.outerjoin(table, table.c.expires_at > now.c.now))
        .group_by(now.c.now, table.c.kind, table.c.subject)
    )
    rows = conn.execute(question).all()
    return rows[0].now, {(row.kind, row.subject): row.last for row in rows if row.kind is not None}
