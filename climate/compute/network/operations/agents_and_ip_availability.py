"""Overview of networks: addresses in use, and network services."""

from climate.compute.context import Compute
from climate.compute.store.networks import ip_counts, network_hosts
from climate.compute.store.networks.ip_counts import IpCount
from climate.database.connections import reading


def addresses_in_use(compute: Compute) -> list[IpCount]:
    """Return the number of addresses, and of used ones, for each network and each pool."""
    with reading(compute.engine) as conn:
        return ip_counts.listed(conn)


def services(compute: Compute) -> list[dict[str, object]]:
    """Return the network services, and whether their heartbeats are recent."""
    with reading(compute.engine) as conn:
        return network_hosts.listed(conn, compute.now(conn), compute.network.down_seconds)
