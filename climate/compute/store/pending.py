"""Whether anybody may have to be rung for, in one statement: nothing else is asked while there is nothing."""

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
    """What there may be to ring for."""

    servers: bool
    """A server has a task, or a member of a cluster an order that nobody has begun."""
    calls: bool
    """A network host is called for."""
    messages: bool
    """Allocators of networks are to be told of something."""


def look(conn: Connection) -> Pending:
    """Look what there is, whoever is at it already."""
    return Pending(*conn.execute(_LOOK).one())
