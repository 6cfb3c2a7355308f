"""climate boot, server, flavor, image: servers of the cloud."""

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, BinaryIO, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.errors import NOT_FOUND, Failure
from climate.cli.options import PairType, WaitOptions, listed, output_options, seconds, waited
from climate.cli.servers.boot_hints import HintOptions, hints, placement
from climate.cli.wait import Goal, existing, wait

if TYPE_CHECKING:
    from climate.cli.response_types.servers import ActionAnswer, Booted, Server

SERVER_COLUMNS = ("id", "name", "status", "addresses", "OS-EXT-SRV-ATTR:hypervisor_hostname")
FLAVOR_COLUMNS = ("id", "name", "vcpus", "ram", "disk", "os-flavor-access:is_public")


class BootOptions(HintOptions, WaitOptions):
    """Options of `boot`."""

    flavor: str
    image: str
    networks: tuple[str, ...]
    availability_zone: str | None
    count: int
    key_name: str | None
    metadata: tuple[tuple[str, str], ...]
    user_data: BinaryIO | None
    config_drive: bool


@click.command("boot")
@click.argument("name")
@click.option("--flavor", required=True, help="Flavor, by name or id.")
@click.option("--image", required=True, help="Image, by name or id.")
@click.option(
    "--network", "networks", multiple=True, help="Network, by name or id; repeatable. By default the cloud chooses."
)
@click.option(
    "--availability-zone",
    metavar="ZONE[:HOST[:NODE]]",
    help="Zone of the servers; administrators may name a service host and a node in it, too.",
)
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="Number of servers.")
@click.option("--key-name", metavar="NAME", help="Key pair whose public key the server gets; for logins by SSH.")
@click.option("--metadata", type=PairType(), multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--user-data", type=click.File("rb"), metavar="FILE", help="File with the user data of the server.")
@click.option("--config-drive", is_flag=True, help="Attach a config drive with the metadata, also without user data.")
@placement
@waited
@output_options
def boot(name: str, **given: Unpack[BootOptions]) -> None:
    """Boot a server: now, on the hosts of a lease, or reserved until a lease starts."""
    session = current()
    made = _ids(session, _body(session, name, given))
    if given["wait"]:
        wanted = ("RESERVED", "ACTIVE") if given["reserved"] else ("ACTIVE",)
        servers = [_wait(session, server_id, wanted, seconds(given["timeout"])) for server_id in made]
    else:
        servers = [lookup.server_by_id(session.client, server_id) for server_id in made]
    if given["count"] == 1:
        session.show(flat(servers[0]))
    else:
        session.show_all(map(flat, servers), SERVER_COLUMNS)


def _ids(session: Session, body: Mapping[str, object]) -> list[str]:
    """Boot servers and return their ids; servers of one request share a reservation id."""
    made: Booted = session.client.json("compute", "POST", "/servers", json=body)
    if "server" in made:
        return [made["server"]["id"]]
    build = {"reservation_id": made["reservation_id"]}
    servers: Iterable[Server] = session.client.pages("compute", "/servers/detail", "servers", build)
    return [server["id"] for server in servers]


def _body(session: Session, name: str, options: BootOptions) -> dict[str, object]:
    client = session.client
    wanted = hints(session, name, options)
    networks = [{"uuid": lookup.network_id(client, network)} for network in options["networks"]]
    server: dict[str, object] = {
        "name": name,
        "flavorRef": lookup.flavor_id(client, options["flavor"]),
        "imageRef": lookup.image_id(client, options["image"]),
        "networks": networks or "auto",
        "min_count": options["count"],
        "max_count": options["count"],
    }
    if options["availability_zone"] is not None:
        server["availability_zone"] = options["availability_zone"]
    if options["key_name"] is not None:
        server["key_name"] = options["key_name"]
    if options["count"] > 1:
        server["return_reservation_id"] = True
    if options["metadata"]:
        server["metadata"] = dict(options["metadata"])
    if options["user_data"] is not None:
        server["user_data"] = base64.b64encode(options["user_data"].read()).decode()
    if options["config_drive"]:
        server["config_drive"] = True
    return {"server": server, **({"OS-SCH-HNT:scheduler_hints": wanted} if wanted else {})}


def _wait(session: Session, server_id: str, wanted: tuple[str, ...], timeout: float) -> "Server":
    def why(server: "Server | None") -> str | None:
        if server is None:
            return f"server {server_id} is gone"
        fault = server.get("fault")
        said = fault.get("message", "") if fault else ""
        return f"server {server_id} is ERROR: {said}" if server["status"] == "ERROR" else None

    def there(server: "Server | None") -> bool:
        return server is not None and server["status"] in wanted

    advice = f"`climate server actions {server_id}` shows what was done, or ask the administrator"
    goal = Goal(f"server {server_id}", lambda: find(session, server_id), there, why, advice)
    return existing(goal, wait(session, goal, timeout))


def find(session: Session, server_id: str) -> "Server | None":
    """Return a server, None if it is gone."""
    try:
        return lookup.server_by_id(session.client, server_id)
    except Failure as failure:
        if failure.code == NOT_FOUND:
            return None
        raise


def flat(server: "Server") -> dict[str, object]:
    """Return a server without links, in single values."""
    kept = {key: value for key, value in server.items() if key not in ("links", "OS-DCF:diskConfig")}
    if isinstance(server.get("addresses"), dict):
        kept["addresses"] = ", ".join(
            f"{network}={entry['addr']}" for network, entries in server["addresses"].items() for entry in entries
        )
    return kept


@click.group("server")
def server_group() -> None:
    """Servers."""


@server_group.command("list")
@click.option("--all-projects", is_flag=True, help="Include all projects (administrator).")
@click.option("--status", help="Only servers in this status.")
@click.option("--name", help="Only servers with this name.")
@listed
def server_list(all_projects: bool, status: str | None, name: str | None) -> None:
    """List servers."""
    session = current()
    query = {"all_tenants": "True"} if all_projects else {}
    query |= {"status": status} if status else {}
    query |= {"name": f"^{re.escape(name)}$"} if name else {}
    rows: Iterable[Server] = session.client.pages("compute", "/servers/detail", "servers", query)
    session.show_all([flat(row) for row in rows], SERVER_COLUMNS)


@server_group.command("show")
@click.argument("server")
@output_options
def server_show(server: str) -> None:
    """Show a server."""
    session = current()
    session.show(flat(lookup.server(session.client, server)))


@server_group.command("delete")
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@waited
def server_delete(servers: tuple[str, ...], wait: bool, timeout: timedelta) -> None:
    """Delete servers."""
    session = current()
    ids = [str(lookup.server(session.client, server)["id"]) for server in servers]
    for server_id in ids:
        session.client.call("compute", "DELETE", f"/servers/{server_id}")
    for server_id in ids if wait else ():
        _wait_gone(session, server_id, seconds(timeout))


def _wait_gone(session: Session, server_id: str, timeout: float) -> None:
    goal = Goal(f"server {server_id}", lambda: find(session, server_id), lambda server: server is None)
    wait(session, goal, timeout)


@server_group.command("console")
@click.argument("server")
@click.option("--lines", type=click.IntRange(1), help="Number of last lines.")
def server_console(server: str, lines: int | None) -> None:
    """Print the console log of a server."""
    session = current()
    server_id = lookup.server(session.client, server)["id"]
    action = {"os-getConsoleOutput": {"length": lines} if lines else {}}
    answer: ActionAnswer = session.client.json("compute", "POST", f"/servers/{server_id}/action", json=action)
    click.echo(answer.get("output", ""), nl=False)


@click.group("flavor")
def flavor_group() -> None:
    """Flavors of servers."""


@flavor_group.command("list")
@listed
def flavor_list() -> None:
    """List flavors."""
    session = current()
    rows = session.client.pages("compute", "/flavors/detail", "flavors", {"is_public": "None"})
    session.show_all([{key: row[key] for key in row if key != "links"} for row in rows], FLAVOR_COLUMNS)


@click.group("image")
def image_group() -> None:
    """Images of servers."""


@image_group.command("list")
@listed
def image_list() -> None:
    """List images."""
    session = current()
    session.show_all(session.client.pages("image", "/v2/images", "images"), ("id", "name", "status"))
