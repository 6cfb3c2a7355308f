"""climate network: networks of servers, their projects, and their network services."""

from typing import TYPE_CHECKING, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.http_protocols import Sent
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.client import Json
    from climate.cli.response_types.networks import ComputeNetwork, NetworkAgent

PROXIED = {"OpenStack-API-Version": "compute 2.35", "X-OpenStack-Nova-API-Version": "2.35"}
"""Last microversion of os-networks, which accepts all options of network managers."""

COLUMNS = ("id", "label", "manager", "cidr", "vlan", "bridge", "project_id", "host")
OWN = ("id", "label", "cidr", "gateway")
HOSTS = ("host", "alive", "heartbeat_timestamp", "networks")


def call(method: str, path: str, **sent: Unpack[Sent]) -> "Json":
    """Return the answer of Compute below microversion 2.36."""
    sent["headers"] = PROXIED
    return current().client.json("compute", method, path, **sent)


def network_id(wanted: str) -> str:
    """Return the id of a network of servers by its id or its label."""
    rows: list[ComputeNetwork] = call("GET", "/os-networks")["networks"]
    return str(lookup.only("network", wanted, rows, "label")["id"])


@click.group("network")
def group() -> None:
    """Networks of servers, their projects, and their network services."""


@group.command("create")
@click.argument("label")
@click.argument("cidr", metavar="RANGE")
@click.option(
    "--manager", type=click.Choice(["flat", "flat_dhcp", "vlan"]), help="Network manager; by default the deployment's."
)
@click.option("--count", "num_networks", type=click.IntRange(1), help="Number of networks in the range.")
@click.option("--size", "network_size", type=click.IntRange(8), help="Addresses of each network.")
@click.option(
    "--vlan",
    "vlan_start",
    type=click.IntRange(1, 4094),
    help="VLAN of the first network; by default the next free one.",
)
@click.option("--vpn-port", "vpn_start", type=click.IntRange(1, 65535), help="VPN port of the first network.")
@click.option("--bridge", help="Bridge of a flat network.")
@click.option("--interface", "bridge_interface", help="Interface attached to the bridge.")
@click.option("--ipv6", "cidr_v6", metavar="RANGE", help="IPv6 range; each network gets a /64 of it.")
@click.option("--dns", multiple=True, help="DNS server; at most two.")
@click.option("--project", "project_id", metavar="ID", help="Project of VLAN networks.")
@listed
def create(label: str, cidr: str, dns: tuple[str, ...], **given: str | int | None) -> None:
    """Create networks out of a RANGE like 10.1.0.0/16; they work after a network host has claimed them."""
    if len(dns) > 2:
        raise click.UsageError("at most two --dns")
    wanted = {key: value for key, value in given.items() if value is not None}
    body: dict[str, object] = {"label": label, "cidr": cidr, **wanted}
    body |= {f"dns{index}": server for index, server in enumerate(dns, 1)}
    current().show_all(call("POST", "/os-networks", json={"network": body})["networks"], COLUMNS)


@group.command("list")
@listed
def list_() -> None:
    """List networks: administrators see all, others those that they may use."""
    rows: list[ComputeNetwork] = call("GET", "/os-networks")["networks"]
    current().show_all(rows, COLUMNS if rows and "manager" in rows[0] else OWN)


@group.command("show")
@click.argument("network")
@output_options
def show(network: str) -> None:
    """Show a network, by its id or its label."""
    rows: list[ComputeNetwork] = call("GET", "/os-networks")["networks"]
    current().show(lookup.only("network", network, rows, "label"))


@group.command("delete")
@click.argument("networks", nargs=-1, required=True, metavar="NETWORK...")
def delete(networks: tuple[str, ...]) -> None:
    """Delete networks that belong to no project and that nobody uses."""
    for network in [network_id(name) for name in networks]:
        call("DELETE", f"/os-networks/{network}")


@group.command("associate")
@click.argument("project", metavar="PROJECT-ID")
@click.argument("network", required=False)
def associate(project: str, network: str | None) -> None:
    """Associate a VLAN NETWORK with a project; without NETWORK, the first free one."""
    wanted = None if network is None else network_id(network)
    call("POST", "/os-networks/add", json={"id": wanted, "project_id": project})


@group.command("disassociate")
@click.argument("network")
def disassociate(network: str) -> None:
    """Disassociate a network from its project; another project may then get it."""
    call("POST", f"/os-networks/{network_id(network)}/action", json={"disassociate": None})


@group.command("hosts")
@listed
def hosts() -> None:
    """List the network services with the number of their networks (administrator)."""
    session = current()
    rows: list[NetworkAgent] = session.client.json("network", "GET", "/v2.0/agents")["agents"]
    session.show_all([{**row, "networks": row["configurations"]["networks"]} for row in rows], HOSTS)
