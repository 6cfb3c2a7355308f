"""Pending work of all kinds, by one statement: nothing else is queried while there is none."""

from dataclasses import dataclass

from sqlalchemy import Connection, exists, or_, select

from climate.compute.store.tables.cluster_members import orders
from climate.compute.store.tables.networks import network_calls, network_messages
from climate.compute.store.tables.servers import servers

_LOOK = select(
    or_(exists().where(servers.c.task.is_not(None)), exists().where(orders.c.begun_at.is_(None))),
    exists(network_calls.c.id),
    exists(network_messages.c.id),
)


@dataclass(frozen=True, slots=True)
class Pending:
    """The kinds of pending work that wake-ups may be needed for."""

    servers: bool
    """A server has a task, or a member of a cluster an order that was not begun."""
    calls: bool
    """A network host has a pending call."""
    messages: bool
    """An allocator of networks has a pending message."""


def read(conn: Connection) -> Pending:
    """Return the kinds of pending work, also claimed work."""
    return Pending(*conn.execute(_LOOK).one())
