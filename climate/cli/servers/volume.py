"""climate volume: volumes of the project, which leases of storage create."""

from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.storage import Volume

COLUMNS = ("id", "name", "status", "size", "volume_type", "server_id", "reservation_id")
PATH = "/volume/v3/volumes"


@click.group("volume")
def group() -> None:
    """Volumes, which leases of storage create and servers use."""


@group.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Include all projects (administrator).")
@listed
def list_(everywhere: bool) -> None:
    """List volumes."""
    session = current()
    session.show_all([_flat(one) for one in _volumes(session.client, everywhere)], COLUMNS)


@group.command("show")
@click.argument("volume")
@output_options
def show(volume: str) -> None:
    """Show a volume by its id or its name."""
    session = current()
    session.show(_flat(_one(session.client, volume)))


@group.command("attach")
@click.argument("volume")
@click.argument("server")
@output_options
def attach(volume: str, server: str) -> None:
    """Attach a volume to a server of the project."""
    client = current().client
    body = {"volumeAttachment": {"volumeId": _one(client, volume)["id"]}}
    path = f"/servers/{lookup.server(client, server)['id']}/os-volume_attachments"
    current().show(client.json("compute", "POST", path, json=body)["volumeAttachment"])


@group.command("detach")
@click.argument("volume")
def detach(volume: str) -> None:
    """Detach a volume from its server."""
    client = current().client
    one = _one(client, volume)
    if not one["attachments"]:
        raise click.UsageError(f"volume {volume} is {one['status']} and not attached to a server")
    client.call("compute", "DELETE", f"/servers/{one['attachments'][0]['server_id']}/os-volume_attachments/{one['id']}")


@group.command("delete")
@click.argument("volumes", nargs=-1, required=True, metavar="VOLUME...")
def delete(volumes: tuple[str, ...]) -> None:
    """Delete volumes that were kept after their leases."""
    client = current().client
    for one in [_one(client, volume) for volume in volumes]:
        client.request("DELETE", f"{client.root}{PATH}/{one['id']}")


def _volumes(client: Client, everywhere: bool = False) -> "list[Volume]":
    query = {"all_tenants": "true"} if everywhere else {}
    listed: list[Volume] = client.body(client.request("GET", f"{client.root}{PATH}/detail", params=query))["volumes"]
    return listed


def _one(client: Client, wanted: str) -> "Volume":
    if lookup.UUID.fullmatch(wanted):
        answer = client.request("GET", f"{client.root}{PATH}/{lookup.part(wanted)}")
        found: Volume = client.body(answer)["volume"]
        return found
    return lookup.only("volume", wanted, _volumes(client))


def _flat(one: "Volume") -> dict[str, object]:
    servers = [attachment["server_id"] for attachment in one["attachments"]]
    more = {"server_id": servers[0] if servers else None, "reservation_id": one["metadata"].get("reservation_id")}
    return {**one, **more}
