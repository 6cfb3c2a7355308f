"""climate power and climate host power: power of hosts."""

from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.dates import Moment, MomentType, wire
from climate.cli.options import JsonType, PairType, dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import Power, PowerReport

POWER = ("id", "name", "pool", "driver", "on", "wanted", "state", "changed_at", "watts", "failures", "error")
REPORT = ("id", "name", "hours_off")


@click.group("power")
def group() -> None:
    """Power state of hosts, and the energy that is saved."""


@group.command("list")
@listed
def list_() -> None:
    """List the hosts with power settings."""
    session = current()
    session.show_all(session.client.pages("reservation", "/power", "power"), POWER)


@group.command("report")
@click.option("--from", "start", type=MomentType(), help="Start of the report; by default 30 days before its end.")
@click.option("--to", "end", type=MomentType(), help="End of the report; by default now.")
@click.option("--hosts", is_flag=True, help="One row per host instead of the sum.")
@listed
def report(start: Moment | None, end: Moment | None, hosts: bool) -> None:
    """Report for how many hours hosts were off, and how many kWh that saved."""
    session = current()
    moments = {"from": start, "to": end}
    query = {name: wire(moment.when(session.client.now())) for name, moment in moments.items() if moment}
    report: PowerReport = session.client.json("reservation", "GET", "/power/report", params=query)["report"]
    if hosts:
        session.show_all(report["hosts"], REPORT)
    else:
        whole = report if session.form in ("json", "yaml") else {k: v for k, v in report.items() if k != "hosts"}
        session.show(whole)


@click.group("power")
def host_group() -> None:
    """Power settings and power state of a host."""


@host_group.command("show")
@click.argument("host")
@output_options
def show(host: str) -> None:
    """Show the power settings of a host, without passwords."""
    session = current()
    session.show(session.client.json("reservation", "GET", _path(host))["power"])


@host_group.command("set")
@click.argument("host")
@click.option("--driver", required=True, help="Power driver: memory, redfish, ipmi, or another installed one.")
@click.option("--setting", "settings", type=PairType(), multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--json", "more", type=JsonType(dict, wanted="object"), help="Settings as JSON.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="KEY", help="Name of a setting that is prompted for; repeatable."
)
@click.option("--watts", type=click.IntRange(0), help="Idle power of the host in watts.")
@dry_run
@output_options
def set_(
    host: str,
    *,
    driver: str,
    settings: tuple[tuple[str, str], ...],
    more: dict[str, object] | None,
    secrets: tuple[str, ...],
    watts: int | None,
    dry_run: bool,
) -> None:
    """Replace all power settings of a host.

    Secrets are prompted for, or read from standard input, one a line, because
    every user of the machine can read the command line.
    """
    session = current()
    asked = {name: click.prompt(name, hide_input=session.interactive, err=True) for name in secrets}
    body = {"driver": driver, "settings": {**dict(settings), **(more or {}), **asked}, "watts": watts}
    power: Power = session.client.json("reservation", "PUT", _path(host), json=body, params=dry(dry_run))["power"]
    session.show(power)


@host_group.command("clear")
@click.argument("host")
@click.option("--force", is_flag=True, help="Also while it is off.")
@dry_run
def clear(host: str, force: bool, dry_run: bool) -> None:
    """Delete the power settings of a host."""
    current().client.call("reservation", "DELETE", _path(host), params=_query(dry_run, force=force))


@host_group.command("on")
@click.argument("host")
@click.option("--force", is_flag=True, help="Also while it is being powered off.")
@dry_run
@output_options
def on(host: str, force: bool, dry_run: bool) -> None:
    """Request power on of a host; the host is on some time later."""
    _switch(host, "on", _query(dry_run, force=force))


@host_group.command("off")
@click.argument("host")
@click.option("--hard", is_flag=True, help="Cut the power instead of a soft power off.")
@click.option("--force", is_flag=True, help="Also while it is in use or needed soon.")
@dry_run
@output_options
def off(host: str, hard: bool, force: bool, dry_run: bool) -> None:
    """Request power off of a host; the host is off some time later."""
    _switch(host, "off", _query(dry_run, hard=hard, force=force))


def _switch(host: str, way: str, query: dict[str, str]) -> None:
    session = current()
    session.show(session.client.json("reservation", "POST", f"{_path(host)}/{way}", params=query)["power"])


def _query(dry_run: bool, **flags: bool) -> dict[str, str]:
    return {**dry(dry_run), **{name: "true" for name, given in flags.items() if given}}


def _path(host: str) -> str:
    return f"/os-hosts/{lookup.host_id(current().client, host)}/power"


HOST_COMMANDS = (host_group,)
"""Commands of `climate host`."""
