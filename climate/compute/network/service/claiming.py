"""Claims of networks by network hosts: at most one per beat, so that several hosts share them."""

import json

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.network import managers
from climate.compute.network.allocation.allocator import GRANT_SECONDS
from climate.compute.network.models import Network
from climate.compute.network.network_options import FEWEST
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks.network_hosts import HostWork, TimeLimits
from climate.database.connections import alone

log = structlog.get_logger(__name__)


def beat(compute: Compute) -> None:
    """Record a heartbeat of this process's network service."""
    with alone(compute.engine) as conn:
        network_hosts.beat(conn, compute.network_host, compute.other_time(conn))


def beat_and_look(compute: Compute) -> HostWork:
    """Record a heartbeat of this process's network service, and return the work of its host."""
    options = compute.network
    waits = TimeLimits(options.down_seconds, options.timeout_seconds, GRANT_SECONDS)
    with alone(compute.engine) as conn:
        return network_hosts.beat_and_look(conn, compute.network_host, compute.other_time(conn), waits)


def claim(compute: Compute) -> Network | None:
    """Claim the first network without a live host; return None if there is none.

    The row is locked, so of two competing hosts one gets it and the other tries the next.
    """
    with compute.engine.begin() as conn:
        network = claim_one(conn, compute)
    if network is not None:
        log.info("network claimed", network=network.label, host=compute.network_host)
    return network


def claim_one(conn: Connection, compute: Compute) -> Network | None:
    """Claim a network as `claim` does, within a transaction."""
    options = compute.network
    if options.placement == FEWEST and not _has_fewest(conn, compute):
        return None
    network = rows.claim(conn, compute.network_host, compute.now(conn), options.down_seconds)
    changes = {} if network is None else managers.of(network).claimed(network, options)
    if network is not None and changes:
        rows.change(conn, network.id, json.dumps(dict(changes)))
    return network


def _has_fewest(conn: Connection, compute: Compute) -> bool:
    """Return whether this host has room for another network, and no live host has fewer."""
    options = compute.network
    own, fewest = network_hosts.loads(conn, compute.network_host, compute.now(conn), options.down_seconds)
    if fewest >= options.max_networks:
        if rows.unclaimed(conn):
            log.warning("no network host has room for another network", networks=fewest, most=options.max_networks)
        return False
    return own == fewest
