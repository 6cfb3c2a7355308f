"""Network hosts that need a wake-up: those with recorded changes, and all for their beats."""

from climate.compute.context import Compute
from climate.compute.store.networks import allocator_messages
from climate.compute.store.networks import network_hosts as rows
from climate.database.connections import alone

AGAIN_SECONDS = 2.0
"""Seconds after which an unanswered wake-up is repeated."""


def to_ring(compute: Compute) -> list[str]:
    """Return the live hosts with recorded changes."""
    with alone(compute.engine) as conn:
        return list(rows.to_ring(conn, compute.now(conn), AGAIN_SECONDS, compute.network.down_seconds))


def to_notify(compute: Compute) -> list[str]:
    """Return the live hosts whose allocators have pending notifications."""
    if compute.network_queue is None:
        return []
    with alone(compute.engine) as conn:
        return allocator_messages.to_ring(conn, compute.now(conn), AGAIN_SECONDS, compute.network.down_seconds)


def to_beat(compute: Compute) -> list[tuple[str, bool, bool]]:
    """Return (host, a complete check is due, the host is live) for each network host."""
    options = compute.network
    with alone(compute.engine) as conn:
        return rows.to_beat(conn, compute.other_time(conn), options.look_seconds, options.down_seconds)
