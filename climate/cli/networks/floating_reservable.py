"""climate floating reservable: floating IPs that can be reserved."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.networks import ReservableFloatingIp

PATH = "/floatingips"
COLUMNS = ("id", "floating_ip_address", "floating_network_id", "subnet_id", "reservable")


@click.group("reservable")
def group() -> None:
    """Floating IPs that can be reserved, and their allocations."""


@group.command("create")
@click.argument("network")
@click.argument("address")
@dry_run
@output_options
def create(network: str, address: str, dry_run: bool) -> None:
    """Register ADDRESS of the external NETWORK (id or name); the cloud must not allocate the address itself."""
    session = current()
    outside = partial(session.client.pages, "network", "/v2.0/networks", "networks", {"router:external": "True"})
    network_id = lookup.whole_id("floating pool", network, outside)
    body = {"floating_network_id": network_id, "floating_ip_address": address}
    answer = session.client.json("reservation", "POST", PATH, json=body, params=dry(dry_run))
    session.show(answer.get("floatingip", answer))


@group.command("list")
@listed
def list_() -> None:
    """List floating IPs that can be reserved."""
    session = current()
    session.show_all(session.client.pages("reservation", PATH, "floatingips"), COLUMNS)


@group.command("show")
@click.argument("floatingip")
@output_options
def show(floatingip: str) -> None:
    """Show a floating IP by its id or its address."""
    session = current()
    session.show(_one(session.client, floatingip))


@group.command("delete")
@click.argument("floatingips", nargs=-1, required=True, metavar="FLOATINGIP...")
@dry_run
def delete(floatingips: tuple[str, ...], dry_run: bool) -> None:
    """Delete floating IPs from those that can be reserved."""
    session = current()
    for floatingip_id in [_id(session.client, floatingip) for floatingip in floatingips]:
        session.client.call("reservation", "DELETE", f"{PATH}/{floatingip_id}", params=dry(dry_run))


@group.command("allocations")
@click.argument("floatingip", required=False)
@listed
def allocations(floatingip: str | None) -> None:
    """List the allocations of a floating IP; without FLOATINGIP, of all of them."""
    session = current()
    client = session.client
    if floatingip:
        path = f"{PATH}/{_id(client, floatingip)}/allocation"
        rows = [client.json("reservation", "GET", path)["allocation"]]
    else:
        rows = client.json("reservation", "GET", f"{PATH}/allocations")["allocations"]
    flat = [{"floating_ip_address": row["floating_ip_address"], **held} for row in rows for held in row["reservations"]]
    session.show_all(flat, ("floating_ip_address", "id", "lease_id", "start_date", "end_date"))


def _one(client: Client, wanted: str) -> "ReservableFloatingIp":
    if lookup.UUID.fullmatch(wanted):
        found: ReservableFloatingIp = client.json("reservation", "GET", f"{PATH}/{lookup.part(wanted)}")["floatingip"]
        return found
    known: Iterable[ReservableFloatingIp] = client.pages("reservation", PATH, "floatingips")
    return lookup.only("floatingip", wanted, known, "floating_ip_address")


def _id(client: Client, wanted: str) -> str:
    """Return the id of a floating IP; an id needs no request."""
    return wanted if lookup.UUID.fullmatch(wanted) else str(_one(client, wanted)["id"])


COMMANDS = (group,)
"""Commands of `climate floating`."""

alias = click.Group("floatingip", commands=group.commands, help=group.help)
"""The group under its former name."""
