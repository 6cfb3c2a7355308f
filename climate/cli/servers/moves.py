"""climate server migrate, evacuate, migrations; climate host evacuate: moves of servers to other hosts."""

from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.errors import Failure
from climate.cli.options import listed, seconds, waited
from climate.cli.servers.actions import act, settled
from climate.cli.servers.server import flat

if TYPE_CHECKING:
    from climate.cli.response_types.servers import Migration, PlannedMove, Server

MIGRATION_COLUMNS = ("id", "instance_uuid", "migration_type", "status", "source_node", "dest_node", "created_at")
MOVE_COLUMNS = ("server", "id", "action", "from", "to", "reason")

NODE, UNKNOWN_NODE = "OS-EXT-SRV-ATTR:hypervisor_hostname", "(not shown)"
"""Keys of a server's host, and the text for an unknown one."""

LIVE = "os-migrateLive"
"""Action of a live migration."""

AFTERWARDS = {"migrate": ("VERIFY_RESIZE",), LIVE: ("ACTIVE", "PAUSED"), "evacuate": ("ACTIVE", "SHUTOFF")}
"""Action -> statuses of servers after its success."""


MoveRow = TypedDict(
    "MoveRow",
    {
        "server": str,
        "id": str,
        "action": str | None,
        "from": str,
        "to": str | None,
        "reason": str | None,
    },
)
"""The move of a server, as `climate host evacuate` shows it."""


@click.command("migrate")
@click.argument("server")
@click.option("--host", help="Destination: a node or its service, by name; by default any.")
@click.option("--confirm", is_flag=True, help="Confirm the migration; implies --wait.")
@click.option("--live", is_flag=True, help="Migrate the running server; needs no confirmation.")
@waited
def migrate(server: str, host: str | None, confirm: bool, live: bool, wait: bool, timeout: timedelta) -> None:
    """Migrate a server to another host (administrator); then `confirm` or `revert` it.

    A cold migration shuts it down, and starts it again if it was running.  `--live` keeps it running;
    another machine needs CLIMATE_MIGRATION_ADDRESS for that.
    """
    session = current()
    server_id = str(lookup.server(session.client, server, everywhere=True)["id"])
    if live:
        _begin_live(session, server_id, host)
        if wait or confirm:
            session.show(flat(_moved_live(session, server_id, seconds(timeout))))
        return
    act(session, server_id, "migrate", {"host": host} if host else None)
    if wait or confirm:
        shown = settled(session, server_id, AFTERWARDS["migrate"], seconds(timeout))
        shown = _confirmed(session, server_id, seconds(timeout)) if confirm else shown
        session.show(flat(shown))


@click.command("evacuate")
@click.argument("server")
@click.option("--host", help="Destination: a node or its service, by name; by default any.")
@click.option("--fenced", is_flag=True, help="Assert that its host is down and does not run the server.")
@waited
def evacuate(server: str, host: str | None, fenced: bool, wait: bool, timeout: timedelta) -> None:
    """Rebuild a server from its image on another host, because its own host is down (administrator).

    It is rebuilt once the power driver reports its host off, or with `--fenced`.
    """
    session = current()
    there = lookup.server(session.client, server, everywhere=True)
    server_id = str(there["id"])
    if not fenced:
        _check_off(session, str(there.get(NODE) or UNKNOWN_NODE))
    act(session, server_id, "evacuate", {"host": host} if host else {})
    if wait:
        session.show(flat(settled(session, server_id, AFTERWARDS["evacuate"], seconds(timeout))))


@click.command("migrations")
@click.argument("server", required=False)
@click.option("--host", help="Only migrations from or to this compute service.")
@click.option("--status", help="Only migrations in this status, such as finished or error.")
@listed
def migrations(server: str | None, host: str | None, status: str | None) -> None:
    """List migrations, newest first (administrator); without SERVER, of all servers."""
    session = current()
    server_id = lookup.server(session.client, server, everywhere=True)["id"] if server else None
    wanted = {"instance_uuid": server_id, "host": host, "status": status}
    query = {key: value for key, value in wanted.items() if value}
    answer = session.client.json("compute", "GET", "/os-migrations", params=query)
    session.show_all(answer["migrations"], MIGRATION_COLUMNS)


@click.command("evacuate")
@click.argument("host")
@click.option("--preview", is_flag=True, help="Show the destination of each server without any change.")
@click.option("--fenced", is_flag=True, help="Assert that the host is down and runs none of its servers.")
@click.option("--confirm/--no-confirm", default=True, help="Confirm the migrations.", show_default=True)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Timeout for each server.")
@listed
def evacuate_host(host: str, preview: bool, fenced: bool, confirm: bool, timeout: float) -> None:
    """Move all servers of a host to other hosts, one by one (administrator).

    Servers of a host that is up are migrated, while they run if their driver can do that.  Those of
    a host that is down are rebuilt from their images once its power driver reports it off, or with
    `--fenced`.  The command fails if a server stays.
    """
    session = current()
    answer = session.client.json("compute", "GET", f"/os-hosts/{lookup.part(host)}/moves")
    moves: list[PlannedMove] = answer["moves"]
    rows = [_row(move) for move in moves]
    if preview:
        session.show_all(rows, MOVE_COLUMNS)
        return
    movable = [row for row in rows if not row["reason"]]
    if not fenced and any(row["action"] == "evacuate" for row in movable):
        _check_off(session, host)
    for row in movable:
        row["reason"] = _move(session, row, timeout, confirm=confirm)
    session.show_all(rows, MOVE_COLUMNS)
    if left := [row for row in rows if row["reason"]]:
        raise Failure(f"{len(left)} of {len(rows)} servers stayed on {host}")


def _check_off(session: Session, host: str) -> None:
    """Return if the power driver reports the host off; Failure if it has no driver, or another state."""
    try:
        path = f"/os-hosts/{lookup.host_id(session.client, host)}/power"
        state = str(session.client.json("reservation", "GET", path)["power"]["state"])
    except Failure:
        state = "unknown"
    if state != "off":
        raise Failure(
            f"servers of host {host} may still run there: its power is {state}. Switch it off with "
            f"`climate host power off {host} --hard --force`, or say --fenced once you have seen that it is off"
        )


def _row(move: "PlannedMove") -> MoveRow:
    return {
        "server": move["server"]["name"],
        "id": move["server"]["id"],
        "action": move["action"],
        "from": move["source_node"],
        "to": move["dest_node"],
        "reason": move["reason"],
    }


def _move(session: Session, row: MoveRow, timeout: float, *, confirm: bool) -> str | None:
    """Move a server as planned; return the reason of a failure, or None."""
    server_id, action = str(row["id"]), str(row["action"])
    try:
        if action == LIVE:
            _begin_live(session, server_id, row["to"])
            _moved_live(session, server_id, timeout)
            return None
        act(session, server_id, action, {"host": row["to"]})
        settled(session, server_id, AFTERWARDS[action], timeout)
        if action == "migrate" and confirm:
            _confirmed(session, server_id, timeout)
    except Failure as failure:
        return str(failure)
    return None


def _begin_live(session: Session, server_id: str, host: str | None) -> None:
    act(session, server_id, LIVE, {"host": host, "block_migration": "auto"})


def _moved_live(session: Session, server_id: str, timeout: float) -> "Server":
    """Return the server once it has moved; Failure if it stayed."""
    shown = settled(session, server_id, AFTERWARDS[LIVE], timeout)
    query = {"instance_uuid": server_id, "migration_type": "live-migration"}
    found_rows: list[Migration] = session.client.json("compute", "GET", "/os-migrations", params=query)["migrations"]
    if found_rows and found_rows[0]["status"] != "completed":
        raise Failure(f"server {server_id} stayed on its host: its migration is {found_rows[0]['status']}")
    return shown


def _confirmed(session: Session, server_id: str, timeout: float) -> "Server":
    act(session, server_id, "confirmResize", None)
    return settled(session, server_id, AFTERWARDS["evacuate"], timeout)


COMMANDS, HOST_COMMANDS = (migrate, evacuate, migrations), (evacuate_host,)
"""Commands of `climate server` and of `climate host`."""
