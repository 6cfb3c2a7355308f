"""climate node: nodes of the cloud and their maintenance."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.options import exactly_one, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.servers import Node

COLUMNS = (
    *("id", "name", "service", "state", "status", "maintenance", "vcpus", "vcpus_used", "memory_mb", "memory_mb_used"),
    *("local_gb", "local_gb_used", "servers"),
)
HOSTS_VERSION = "2.42"
"""Last microversion of the hosts API."""


@click.group("node")
def group() -> None:
    """Nodes of the cloud, on which servers run (administrator)."""


@group.command("list")
@listed
def list_() -> None:
    """List nodes with their usage."""
    session = current()
    query = {"with_maintenance": "true"}
    rows: Iterable[Node] = session.client.pages("compute", "/os-hypervisors/detail", "hypervisors", query)
    session.show_all([_flat(row) for row in rows], COLUMNS)


@group.command("maintenance")
@click.argument("node")
@click.option("--reason", help="Start maintenance with this reason; servers on the node keep running.")
@click.option("--end", is_flag=True, default=None, help="End maintenance.")
@output_options
def maintenance(node: str, reason: str | None, end: bool | None) -> None:
    """Start or end the maintenance of a node."""
    exactly_one(("--reason", "--end"), reason, end)
    session = current()
    body = {"maintenance_mode": "disable"} if end else {"maintenance_mode": "enable", "reason": reason}
    headers = {
        "OpenStack-API-Version": f"compute {HOSTS_VERSION}",
        "X-OpenStack-Nova-API-Version": HOSTS_VERSION,
    }
    session.show(session.client.json("compute", "PUT", f"/os-hosts/{lookup.part(node)}", json=body, headers=headers))


def _flat(node: "Node") -> dict[str, object]:
    named = {"name": node["hypervisor_hostname"], "service": node["service"]["host"], "servers": node["running_vms"]}
    return {**node, **named, "maintenance": node.get("climate:maintenance")}
