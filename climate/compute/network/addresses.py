"""Fixed addresses, from the pool of a network."""

import ipaddress
from collections.abc import Sequence

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, NoMoreAddresses
from climate.compute.store import addresses as store

LARGEST = 1 << 16
"""Addresses in the largest pool."""


def make_network(conn: Connection, label: str, cidr: str) -> str | None:
    """Make a network and its pool: all host addresses but the first, the gateway.  Its id; None when it exists."""
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise BadRequest(f"{cidr!r} is not a network: {error}") from None
    if not 8 <= network.num_addresses <= LARGEST:
        raise BadRequest(f"{cidr} must hold 8 to {LARGEST} addresses")
    made = store.make(conn, label, str(network), str(network[1]))
    if made is not None:
        store.fill(conn, made, str(network[2]), network.num_addresses - 3)
    return made


def chosen(conn: Connection, wanted: Sequence[str] | None) -> list[str]:
    """The ids of the networks asked for; None asks for the oldest one."""
    if wanted is None:
        return [network["id"] for network in store.networks(conn)[:1]]
    for network_id in wanted:
        if not store.networks(conn, network_id):
            raise BadRequest(f"Network {network_id} could not be found.")
    return list(dict.fromkeys(wanted))


def allocate(conn: Connection, network_ids: Sequence[str], server_ids: Sequence[str]) -> None:
    """Give each server an address of each network; NoMoreAddresses when a pool has too few."""
    for network_id in network_ids:
        if store.take(conn, network_id, server_ids) < len(server_ids):
            raise NoMoreAddresses(f"Zero fixed ips available on network {network_id}.")
