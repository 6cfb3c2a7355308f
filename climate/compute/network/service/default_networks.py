"""Default networks of a new deployment."""

from ipaddress import IPv4Network

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict
from climate.compute.network import floating_ips, networks, subnetting
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.managers import vlan
from climate.compute.network.models import VLAN
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.service import claiming
from climate.compute.store.networks import floating_pools, network_hosts
from climate.compute.store.networks import networks as rows

log = structlog.get_logger(__name__)

NETWORK, CIDR = "private", IPv4Network("10.10.0.0/20")


def furnish(conn: Connection, compute: Compute) -> None:
    """Create default networks and a pool of floating addresses if there are none.

    This process's network service claims the first network at once, so that servers can be booted immediately.
    """
    options = compute.network
    if not rows.taken(conn):
        networks.create(conn, options, CreationRequest(NETWORK, CIDR, _count(options)))
        network_hosts.beat(conn, compute.network_host, compute.now(conn))
        claiming.claim_one(conn, compute)
    pool = options.floating_range
    if pool is not None and not floating_pools.pools(conn):
        try:
            _furnish_pool(conn, options, pool)
        except Conflict as refusal:  # Continue: networks matter more to servers than floating addresses.
            log.error("default floating pool not created", reason=str(refusal))


def _furnish_pool(conn: Connection, options: NetworkOptions, pool: IPv4Network) -> None:
    cidr = options.floating_cidr or pool
    made_pool = floating_ips.create_pool(conn, options.floating_pool, cidr, interface=options.public_interface)
    floating_ips.add(conn, made_pool, pool[0], pool[-1], options.own)


def _count(options: NetworkOptions) -> int:
    """Return the number of networks that fit; one, of the whole range, if projects share networks."""
    if options.manager != VLAN:
        return 1
    fitting = CIDR.num_addresses >> (32 - subnetting.prefix_length(options.network_size))
    numbers = min(vlan.LAST_VLAN - options.vlan_start, vlan.LAST_PORT - options.vpn_start) + 1
    return max(1, min(fitting, numbers))
