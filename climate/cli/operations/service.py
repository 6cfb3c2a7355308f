"""climate service: the compute services, and taking them out of work."""

from typing import Any

import click

from climate.cli import lookup
from climate.cli.options import listed, shown
from climate.cli.session import current

COLUMNS = ("id", "host", "zone", "status", "state", "disabled_reason", "forced_down", "updated_at")


@click.group("service")
def group() -> None:
    """Compute services (administrator)."""


@group.command("list")
@listed
def list_() -> None:
    """List compute services, and whether they were heard of lately."""
    session = current()
    session.show_all(session.client.json("compute", "GET", "/os-services")["services"], COLUMNS)


@group.command("enable")
@click.argument("service")
@shown
def enable(service: str) -> None:
    """Let new servers be put on the nodes of a service again."""
    _change(service, {"status": "enabled"})


@group.command("disable")
@click.argument("service")
@click.option("--reason", help="Shown to administrators.")
@shown
def disable(service: str, reason: str | None) -> None:
    """Put no new servers on the nodes of a service; those there go on."""
    _change(service, {"status": "disabled"} | ({"disabled_reason": reason} if reason else {}))


@group.command("down")
@click.argument("service")
@shown
def down(service: str) -> None:
    """Call a service down, whatever is heard of it."""
    _change(service, {"forced_down": True})


@group.command("up")
@click.argument("service")
@shown
def up(service: str) -> None:
    """Believe again what is heard of a service."""
    _change(service, {"forced_down": False})


@group.command("delete")
@click.argument("service")
def delete(service: str) -> None:
    """Forget a service that is down and has no servers."""
    session = current()
    session.client.call("compute", "DELETE", f"/os-services/{lookup.service(session.client, service)['id']}")


def _change(service: str, body: dict[str, Any]) -> None:
    session = current()
    path = f"/os-services/{lookup.service(session.client, service)['id']}"
    session.show(session.client.json("compute", "PUT", path, json=body)["service"])
