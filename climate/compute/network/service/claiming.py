"""Network hosts claim networks: at most one at each beat, so that several hosts share them (cloud.md D.3)."""

import json

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.network import managers
from climate.compute.network.models import Network
from climate.compute.network.network_options import FEWEST
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import networks as rows

log = structlog.get_logger(__name__)


def beat(compute: Compute) -> None:
    """Show that this process's network service is alive."""
    with compute.engine.begin() as conn:
        network_hosts.beat(conn, compute.network_host, compute.now(conn))


def claim(compute: Compute) -> Network | None:
    """Claim the first network that has no host, or whose host is not heard of any more; None: there is none.

    Of two hosts that want it one gets it: the row is locked, and the other looks at the next one.
    """
    with compute.engine.begin() as conn:
        found = claim_one(conn, compute)
    if found is not None:
        log.info("a network is claimed", network=found.label, host=compute.network_host)
    return found


def claim_one(conn: Connection, compute: Compute) -> Network | None:
    """The same, within a transaction."""
    options = compute.network
    if options.placement == FEWEST and not _has_fewest(conn, compute):
        return None
    found = rows.claim(conn, compute.network_host, compute.now(conn), options.down_seconds)
    changes = {} if found is None else managers.of(found).claimed(found, options)
    if found is not None and changes:
        rows.change(conn, found.id, json.dumps(dict(changes)))
    return found


def _has_fewest(conn: Connection, compute: Compute) -> bool:
    """Return whether this host has room for the next network, and no living host has fewer."""
    options = compute.network
    own, fewest = network_hosts.loads(conn, compute.network_host, compute.now(conn), options.down_seconds)
    if fewest >= options.max_networks:
        if rows.unclaimed(conn):
            log.warning("all network hosts have too many networks", networks=fewest, most=options.max_networks)
        return False
    return own == fewest
