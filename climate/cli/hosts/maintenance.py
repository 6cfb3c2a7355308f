"""climate maintenance, climate host maintenance, heal, fail and health: maintenance and failures of hosts."""

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, SpanType, wire
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types.hosts import ChangedMaintenance
    from climate.cli.response_types.leases import Decision

COLUMNS = ("id", "host", "start_date", "end_date", "reason", "state")
STATES = ("planned", "active", "done", "cancelled", "all")


HISTORY = ("version", "at", "kind", "author", "request_id")


class ChangeOptions(TypedDict):
    """Options of `set`."""

    start: Moment | None
    end: Moment | None
    reason: str | None
    force: bool
    move_servers: bool | None


@click.group("maintenance")
def group() -> None:
    """Maintenance windows, in which hosts are allocated to nobody."""


@group.command("list")
@click.option("--host", help="Only windows of this host.")
@click.option(
    "--state", type=click.Choice(STATES), help="Only windows in this state; by default planned and active ones."
)
@listed
def list_(host: str | None, state: str | None) -> None:
    """List maintenance windows."""
    session = current()
    host_id = lookup.host_id(session.client, host) if host else None
    query = {key: value for key, value in (("host_id", host_id), ("state", state)) if value}
    session.show_all(session.client.pages("reservation", "/maintenances", "maintenances", query), COLUMNS)


@group.command("show")
@click.argument("maintenance")
@click.option("--at", type=MomentType(), help="Show the window at this time.")
@output_options
def show(maintenance: str, at: Moment | None) -> None:
    """Show a maintenance window."""
    session = current()
    path = f"/maintenances/{_id(session, maintenance)}"
    query = {"at": wire(at.when(session.client.now()))} if at else {}
    session.show(session.client.json("reservation", "GET", path, params=query)["maintenance"])


@group.command("history")
@click.argument("maintenance")
@listed
def history(maintenance: str) -> None:
    """List the changes of a maintenance window with their authors."""
    session = current()
    path = f"/maintenances/{_id(session, maintenance)}/history"
    lines: list[Decision] = session.client.json("reservation", "GET", path)["history"]
    session.show_all([{**line, "author": line["actor"].get("user_id")} for line in lines], HISTORY)


@group.command("set")
@click.argument("maintenance")
@click.option("--from", "start", type=MomentType(), help="New start of a window that has not started.")
@click.option("--to", "end", type=MomentType(), help="New end.")
@click.option("--open-end", is_flag=True, help="Remove the end.")
@click.option("--reason", help="Reason of the maintenance.")
@click.option("--force", is_flag=True, help="Reallocate conflicting leases.")
@click.option("--move-servers/--no-move-servers", default=None, help="Move servers to other hosts during the window.")
@dry_run
@output_options
def set_(maintenance: str, open_end: bool, dry_run: bool, **given: Unpack[ChangeOptions]) -> None:
    """Update the dates or the reason of a maintenance window."""
    session = current()
    if open_end and given["end"]:
        raise click.UsageError("give only one of --to, --open-end")
    body = {
        **({"start_date": _date(session, given["start"])} if given["start"] else {}),
        **({"end_date": _date(session, given["end"])} if given["end"] else {}),
        **({"end_date": None} if open_end else {}),
        **({"reason": given["reason"]} if given["reason"] else {}),
        **({"move_servers": given["move_servers"]} if given["move_servers"] is not None else {}),
        "force": given["force"],
    }
    path = f"/maintenances/{_id(session, maintenance)}"
    _show(session, session.client.json("reservation", "PUT", path, json=body, params=dry(dry_run)))


@group.command("end")
@click.argument("maintenances", nargs=-1, required=True, metavar="MAINTENANCE...")
@dry_run
def end(maintenances: tuple[str, ...], dry_run: bool) -> None:
    """End maintenance windows, or cancel those that have not started; the hosts are free again."""
    session = current()
    for window in [_id(session, maintenance) for maintenance in maintenances]:
        session.client.json("reservation", "DELETE", f"/maintenances/{window}", params=dry(dry_run))


def _id(session: Session, wanted: str) -> str:
    """Return the id of a window, in any state, as a part of a path."""
    every = partial(session.client.pages, "reservation", "/maintenances", "maintenances", {"state": "all"})
    return lookup.part(lookup.whole_id("maintenance", wanted, every))


@click.command("maintenance")
@click.argument("host")
@click.option("--from", "start", type=MomentType(), default="now", show_default=True, help="Start of the window.")
@click.option(
    "--to", "end", type=MomentType(), help="End of the window; without it, the window lasts until `maintenance end`."
)
@click.option("--for", "length", type=SpanType(), help="Length instead of an end: 90m, 6h, 1d12h.")
@click.option("--reason", required=True, help="Reason of the maintenance.")
@click.option("--force", is_flag=True, help="Reallocate conflicting leases to other hosts, or leave them degraded.")
@click.option("--move-servers", is_flag=True, help="Move servers on the host to other hosts during the window.")
@dry_run
@output_options
def plan(
    host: str,
    *,
    start: Moment,
    end: Moment | None,
    length: timedelta | None,
    reason: str,
    force: bool,
    move_servers: bool,
    dry_run: bool,
) -> None:
    """Create a maintenance window of a host."""
    session = current()
    if end and length:
        raise click.UsageError("give only one of --to, --for")
    until = start.when(session.client.now().replace(microsecond=0)) + length if length else None
    body = {
        "host_id": lookup.host_id(session.client, host),
        "start_date": _date(session, start),
        "end_date": wire(until) if until else _date(session, end) if end else None,
        "reason": reason,
        "force": force,
        **({"move_servers": True} if move_servers else {}),
    }
    _show(session, session.client.json("reservation", "POST", "/maintenances", json=body, params=dry(dry_run)))


@click.command("health")
@click.argument("host")
@output_options
def health(host: str) -> None:
    """Show the health of a host, its servers and the leases that need it."""
    session = current()
    path = f"/os-hosts/{lookup.host_id(session.client, host)}/health"
    session.show(session.client.json("reservation", "GET", path)["health"])


@click.command("heal")
@click.argument("host")
@dry_run
@output_options
def heal(host: str, dry_run: bool) -> None:
    """Declare a failed host healthy, unless the cloud reports otherwise."""
    _declare(host, "heal", None, dry_run)


@click.command("fail")
@click.argument("host")
@click.option("--reason", required=True, help="Reason of the failure.")
@dry_run
@output_options
def fail(host: str, reason: str, dry_run: bool) -> None:
    """Declare a host failed: its leases get other hosts."""
    _declare(host, "fail", {"reason": reason}, dry_run)


def _declare(host: str, verb: str, body: dict[str, str] | None, dry_run: bool) -> None:
    session = current()
    path = f"/os-hosts/{lookup.host_id(session.client, host)}/{verb}"
    sent: Sent = {"params": dry(dry_run)}
    if body:
        sent["json"] = body
    session.show(session.client.json("reservation", "POST", path, **sent)["place"])


def _date(session: Session, moment: Moment) -> str:
    return "now" if moment.is_now else wire(moment.when(session.client.now().replace(microsecond=0)))


def _show(session: Session, answer: "ChangedMaintenance") -> None:
    """Show the window, and the outcome for leases that overlap it."""
    for lease in answer["leases"]:
        has = "has another host" if lease["replaced"] else "has no other host"
        lacks = f"; it lacks {lease['missing']}" if lease["missing"] else ""
        session.say(f"lease {lease['id']} ({lease['name']}) {has}{lacks}")
    session.show(answer["maintenance"])


HOST_COMMANDS = (plan, health, heal, fail)
"""Commands of `climate host`."""
