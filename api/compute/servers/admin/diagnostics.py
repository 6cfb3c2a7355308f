"""Diagnostics of a server, for administrators."""

from collections.abc import Sequence

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers.servers import find
from api.request_context import compute
from climate.compute.errors import Conflict
from climate.compute.models.server import ACTIVE, Server
from climate.compute.servers import cluster_member

Body = dict[str, object]

DRIVER = "libvirt"
"""Nova allows five names; its driver of QEMU and of containers is this one."""
DISK = ("read_bytes", "read_requests", "write_bytes", "write_requests", "errors_count")
COUNTERS = ("octets", "errors", "drop", "packets", "rate")

blueprint = compute_blueprint("diagnostics")


@blueprint.get("/servers/<server_id>/diagnostics")
def show(server_id: str) -> Body:
    """Show the diagnostics of a server (administrator).

    Before 2.48 Nova leaves the keys to the driver. These are the node of the server, and the member if the node is a
    cluster. Since 2.48 they are Nova's, and what is not measured is null.
    """
    validation.may_administer()
    server = find(server_id)
    if since(48):
        return _measured(server)
    member = cluster_member.member_of(compute(), server)
    return {"state": server.status.lower(), "host": server.service_host, "node": server.node, "member": member}


def _measured(server: Server) -> Body:
    if server.status != ACTIVE:
        raise Conflict(f"Cannot 'get_diagnostics' instance {server.id} while it is {server.status}: it must be ACTIVE.")
    macs = list(dict.fromkeys(address.mac for address in server.addresses))
    return {
        "state": "running",
        "driver": DRIVER,
        "hypervisor": None,
        "hypervisor_os": None,
        "uptime": None,
        "config_drive": server.config_drive,
        "num_cpus": server.flavor.vcpus,
        "num_nics": len(macs),
        "num_disks": 1,
        "memory_details": {"maximum": server.flavor.ram_mb, "used": None},
        "cpu_details": [{"id": cpu, "time": None, "utilisation": None} for cpu in range(server.flavor.vcpus)],
        "nic_details": [_nic(mac) for mac in macs],
        "disk_details": [_unknown(DISK)],
    }


def _nic(mac: str) -> Body:
    counters = [f"{way}_{counter}" for way in ("rx", "tx") for counter in COUNTERS]
    return {"mac_address": mac, **_unknown(counters)}


def _unknown(keys: Sequence[str]) -> Body:
    return dict.fromkeys(keys)
