"""climate service: compute services: enable, disable, force down."""

from collections.abc import Mapping

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

COLUMNS = ("id", "host", "zone", "status", "state", "disabled_reason", "forced_down", "updated_at")


@click.group("service")
def group() -> None:
    """Compute services (administrator)."""


@group.command("list")
@listed
def list_() -> None:
    """List compute services with their state."""
    session = current()
    session.show_all(session.client.json("compute", "GET", "/os-services")["services"], COLUMNS)


@group.command("enable")
@click.argument("service")
@output_options
def enable(service: str) -> None:
    """Enable scheduling to the nodes of a service."""
    _change(service, {"status": "enabled"})


@group.command("disable")
@click.argument("service")
@click.option("--reason", help="Shown to administrators.")
@output_options
def disable(service: str, reason: str | None) -> None:
    """Disable scheduling to the nodes of a service; its servers keep running."""
    _change(service, {"status": "disabled"} | ({"disabled_reason": reason} if reason else {}))


@group.command("down")
@click.argument("service")
@output_options
def down(service: str) -> None:
    """Force a service down, whatever it reports."""
    _change(service, {"forced_down": True})


@group.command("up")
@click.argument("service")
@output_options
def up(service: str) -> None:
    """Clear the forced-down flag of a service."""
    _change(service, {"forced_down": False})


@group.command("delete")
@click.argument("service")
def delete(service: str) -> None:
    """Delete a service that is down and has no servers."""
    session = current()
    session.client.call("compute", "DELETE", f"/os-services/{lookup.service(session.client, service)['id']}")


def _change(service: str, body: Mapping[str, object]) -> None:
    session = current()
    path = f"/os-services/{lookup.service(session.client, service)['id']}"
    session.show(session.client.json("compute", "PUT", path, json=body)["service"])
