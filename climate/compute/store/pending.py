"""Pending work of all kinds, by one statement: nothing else is queried while there is none."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

_LOOK = text("""
    SELECT EXISTS (SELECT FROM compute_servers WHERE task IS NOT NULL)
            OR EXISTS (SELECT FROM compute_member_orders WHERE begun_at IS NULL) AS servers,
        EXISTS (SELECT FROM compute_network_calls) AS calls,
        EXISTS (SELECT FROM compute_network_messages) AS messages
""")


@dataclass(frozen=True, slots=True)
class Pending:
    """The kinds of pending work that wake-ups may be needed for."""

    servers: bool
    """A server has a task, or a member of a cluster an order that was not begun."""
    calls: bool
    """A network host has a pending call."""
    messages: bool
    """An allocator of networks has a pending message."""


def look(conn: Connection) -> Pending:
    """Return the kinds of pending work, also claimed work."""
    return Pending(*conn.execute(_LOOK).one())
