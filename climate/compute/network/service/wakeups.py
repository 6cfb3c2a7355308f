"""Who has to be rung for about networks: hosts for which something has changed, and all of them for their beats."""

from climate.compute.context import Compute
from climate.compute.store.networks import messages
from climate.compute.store.networks import network_hosts as rows
from climate.connections import alone

AGAIN_SECONDS = 2.0
"""A call that was not answered is rung for again after so long."""


def to_ring(compute: Compute) -> list[str]:
    """The hosts that are called for and up."""
    with alone(compute.engine) as conn:
        return list(rows.to_ring(conn, compute.now(conn), AGAIN_SECONDS, compute.network.down_seconds))


def to_tell(compute: Compute) -> list[str]:
    """The hosts whose allocators are to be told of something, and that are up."""
    if compute.network_queue is None:
        return []
    with alone(compute.engine) as conn:
        return messages.to_ring(conn, compute.now(conn), AGAIN_SECONDS, compute.network.down_seconds)


def to_beat(compute: Compute) -> list[tuple[str, bool, bool]]:
    """The network hosts there are, whether it is time for each to look at all that it has, and whether it is up."""
    options = compute.network
    with alone(compute.engine) as conn:
        return rows.to_beat(conn, compute.now(conn), options.look_seconds, options.down_seconds)
