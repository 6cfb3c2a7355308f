"""climate server stop, start, pause, …, resize, rebuild, lock: actions on an existing server."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.errors import Failure
from climate.cli.options import PairType, listed, output_options, seconds, waited
from climate.cli.servers.server import find, flat
from climate.cli.wait import Goal, wait

if TYPE_CHECKING:
    from climate.cli.response_types.servers import ActionAnswer, Server

ACTION_COLUMNS = ("action", "start_time", "message", "user_id", "request_id")

Verb = tuple[str, str, tuple[str, ...], str]

VERBS: tuple[Verb, ...] = (
    ("stop", "os-stop", ("SHUTOFF",), "Shut servers down."),
    ("start", "os-start", ("ACTIVE",), "Start servers that are shut off."),
    ("pause", "pause", ("PAUSED",), "Pause servers in memory."),
    ("unpause", "unpause", ("ACTIVE",), "Unpause servers."),
    ("suspend", "suspend", ("SUSPENDED",), "Suspend servers to disk."),
    ("resume", "resume", ("ACTIVE",), "Resume suspended servers."),
    ("shelve", "shelve", ("SHELVED_OFFLOADED",), "Shelve servers into images, and free their hosts."),
    ("unshelve", "unshelve", ("ACTIVE",), "Unshelve servers onto a host."),
    ("unrescue", "unrescue", ("ACTIVE",), "Start rescued servers from their own disks again."),
    ("unlock", "unlock", (), "Unlock servers."),
    (
        "confirm",
        "confirmResize",
        ("ACTIVE", "SHUTOFF"),
        "Confirm the resize or migration of servers.",
    ),
    ("revert", "revertResize", ("ACTIVE", "SHUTOFF"), "Revert the resize or migration of servers."),
)
"""(command, action, statuses afterwards, help)."""


def _command(name: str, action: str, wanted: tuple[str, ...], says: str) -> click.Command:
    @click.command(name, help=says)
    @click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
    @waited
    def command(servers: tuple[str, ...], wait: bool, timeout: timedelta) -> None:
        session = current()
        ids = [str(lookup.server(session.client, server)["id"]) for server in servers]
        for server_id in ids:
            act(session, server_id, action, None)
        for server_id in ids if wait and wanted else ():
            settled(session, server_id, wanted, seconds(timeout))

    return command


@click.command("reboot")
@click.argument("server")
@click.option("--hard", is_flag=True, help="Hard reboot; also if the server is not running.")
@waited
def reboot(server: str, hard: bool, wait: bool, timeout: timedelta) -> None:
    """Reboot a server."""
    _change(server, "reboot", {"type": "HARD" if hard else "SOFT"}, ("ACTIVE",), seconds(timeout) if wait else None)


@click.command("resize")
@click.argument("server")
@click.option("--flavor", required=True, help="New flavor, by name or id.")
@waited
def resize(server: str, flavor: str, wait: bool, timeout: timedelta) -> None:
    """Resize a server on its host; then `confirm` or `revert` it."""
    wanted = {"flavorRef": lookup.flavor_id(current().client, flavor)}
    _change(server, "resize", wanted, ("VERIFY_RESIZE",), seconds(timeout) if wait else None)


@click.command("rebuild")
@click.argument("server")
@click.option("--image", required=True, help="Image, by name or id.")
@click.option("--name", help="Another name.")
@click.option("--metadata", type=PairType(), multiple=True, metavar="KEY=VALUE", help="New metadata; repeatable.")
@waited
def rebuild(
    server: str, image: str, name: str | None, metadata: tuple[tuple[str, str], ...], wait: bool, timeout: timedelta
) -> None:
    """Rebuild a server from an image, on its host and with its addresses."""
    wanted = {"imageRef": lookup.image_id(current().client, image)}
    wanted |= {"name": name} if name else {}
    body = {**wanted, **({"metadata": dict(metadata)} if metadata else {})}
    _change(server, "rebuild", body, ("ACTIVE", "SHUTOFF"), seconds(timeout) if wait else None)


@click.command("rescue")
@click.argument("server")
@click.option("--image", help="Image to start from, by name or id; by default the image of the server.")
@waited
def rescue(server: str, image: str | None, wait: bool, timeout: timedelta) -> None:
    """Start a server from an image, with its own disk as the second one."""
    wanted = {"rescue_image_ref": lookup.image_id(current().client, image)} if image else None
    _change(server, "rescue", wanted, ("RESCUE",), seconds(timeout) if wait else None)


@click.command("lock")
@click.argument("server")
@click.option("--reason", help="Shown with the server.")
def lock(server: str, reason: str | None) -> None:
    """Lock a server, so that only administrators can change it."""
    _change(server, "lock", {"locked_reason": reason} if reason else None, (), None)


@click.command("image")
@click.argument("server")
@click.argument("name")
@click.option("--property", "properties", type=PairType(), multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@waited
@output_options
def image(server: str, name: str, properties: tuple[tuple[str, str], ...], wait: bool, timeout: timedelta) -> None:
    """Create an image of a server."""
    session = current()
    server_id = str(lookup.server(session.client, server)["id"])
    body = {"name": name, **({"metadata": dict(properties)} if properties else {})}
    image_id = act(session, server_id, "createImage", body)["image_id"]
    if wait:
        settled(session, server_id, (), seconds(timeout))
    session.show(session.client.json("image", "GET", f"/v2/images/{image_id}"))


@click.command("actions")
@click.argument("server")
@listed
def actions(server: str) -> None:
    """List the actions on a server with their results, newest first."""
    session = current()
    server_id = lookup.server(session.client, server)["id"]
    answer = session.client.json("compute", "GET", f"/servers/{server_id}/os-instance-actions")
    session.show_all(answer["instanceActions"], ACTION_COLUMNS)


def act(session: Session, server_id: str, action: str, details: object) -> "ActionAnswer":
    """Run an action on a server; return the answer, {} if it has no body."""
    path = f"/servers/{lookup.part(server_id)}/action"
    answer: ActionAnswer = session.client.json("compute", "POST", path, json={action: details})
    return answer


def settled(session: Session, server_id: str, wanted: tuple[str, ...], timeout: float) -> "Server":
    """Return the server after its action; Failure if it is in none of these statuses then (none: any is good)."""

    def still(server: "Server | None") -> bool:
        return server is not None and server.get("OS-EXT-STS:task_state") is not None

    goal = Goal(f"server {server_id}", lambda: find(session, server_id), lambda server: not still(server))
    server = wait(session, goal, timeout)
    if server is None:
        raise Failure(f"server {server_id} is gone: no reason given")
    if wanted and server["status"] not in wanted:
        fault = server.get("fault")
        why = fault.get("message", "no reason given") if fault else "no reason given"
        raise Failure(f"server {server_id} is {server['status']}: {why}")
    return server


def _change(server: str, action: str, details: object, wanted: tuple[str, ...], timeout: float | None) -> None:
    session = current()
    server_id = str(lookup.server(session.client, server)["id"])
    act(session, server_id, action, details)
    if timeout is not None:
        session.show(flat(settled(session, server_id, wanted, timeout)))


COMMANDS = (*(_command(*verb) for verb in VERBS), reboot, resize, rebuild, rescue, lock, image, actions)
"""Commands of `climate server`."""
