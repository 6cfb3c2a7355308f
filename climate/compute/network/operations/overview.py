"""Overview of networks: servers' interfaces, addresses in use, and network services."""

from climate.compute.context import Compute
from climate.compute.store.networks import fixed_ips, ip_counts, network_hosts
from climate.compute.store.networks.fixed_ips import Port
from climate.compute.store.networks.ip_counts import IpCount
from climate.connections import reading


def ports(
    compute: Compute, project_id: str | None, *, port_id: str | None = None, server_id: str | None = None
) -> list[Port]:
    """Return the servers' interfaces of a project, or of all if None, filtered by port or server."""
    wanted = {"port_id": port_id, "server_id": server_id, "project_id": project_id}
    with reading(compute.engine) as conn:
        return fixed_ips.ports(conn, wanted)


def addresses_in_use(compute: Compute) -> list[IpCount]:
    """Return the number of addresses, and of used ones, for each network and each pool."""
    with reading(compute.engine) as conn:
        return ip_counts.listed(conn)


def services(compute: Compute) -> list[dict[str, object]]:
    """Return the network services, and whether their heartbeats are recent."""
    with reading(compute.engine) as conn:
        return network_hosts.listed(conn, compute.now(conn), compute.network.down_seconds)
