"""climate zone: the child zones of this deployment, and this deployment as a zone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.errors import USAGE, Failure
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.zones import ChildZone

COLUMNS = ("id", "name", "is_active", "api_url", "attempts", "last_seen", "last_error")

PASSWORD = "CLIMATE_ZONE_PASSWORD"  # noqa: S105
"""Variable with the password of a child's account; without it, the password is prompted for."""


@click.group("zone")
def group() -> None:
    """Child zones: other deployments that this one forwards requests to (administrator)."""


@group.command("list")
@listed
def list_() -> None:
    """List child zones with the results of the last polls."""
    session = current()
    session.show_all(_zones(session), COLUMNS)


@group.command("show")
@click.argument("zone")
@output_options
def show(zone: str) -> None:
    """Show a child zone by its id or name."""
    session = current()
    session.show(_zone(session, zone))


@group.command("info")
@output_options
def info() -> None:
    """Show this deployment as its parent zones see it."""
    session = current()
    session.show(session.client.json("compute", "GET", "/zones/info")["zone"])


@group.command("add")
@click.argument("api_url")
@click.option("--username", required=True, help="An administrator of the child zone.")
@click.option("--weight-offset", type=float, help="Offset of the weights of its offers; lower is better.")
@click.option("--weight-scale", type=float, help="Multiplier of the weights of its offers.")
@output_options
def add(api_url: str, username: str, **weights: float | None) -> None:
    """Create a child zone by the URL of its Compute API, like http://zone:8000/compute/v2.1.

    The password is read from CLIMATE_ZONE_PASSWORD, or prompted for, or read from
    standard input, because every user of the machine can read the command line.
    """
    session = current()
    body = {"api_url": api_url, "username": username, "password": _password(session), **_without_none(weights)}
    session.show(session.client.json("compute", "POST", "/zones", json={"zone": body})["zone"])


@group.command("set")
@click.argument("zone")
@click.option("--api-url", help="New URL of its Compute API.")
@click.option("--username", help="New account in the child zone.")
@click.option("--password", "renew", is_flag=True, help="New password, which is read as by `zone add`.")
@click.option("--weight-offset", type=float, help="Offset of the weights of its offers; lower is better.")
@click.option("--weight-scale", type=float, help="Multiplier of the weights of its offers.")
@output_options
def set_(zone: str, renew: bool, **fields: str | float | None) -> None:
    """Update the registration of a child zone."""
    session = current()
    body = _without_none(fields)
    if not body and not renew:
        raise Failure("nothing to change is given", USAGE, "climate zone set --help")
    path = f"/zones/{_zone(session, zone)['id']}"
    if renew:
        body["password"] = _password(session)
    session.show(session.client.json("compute", "PUT", path, json={"zone": body})["zone"])


@group.command("delete")
@click.argument("zone")
@click.option("--force", is_flag=True, help="Also while leases have hosts there; these allocations are released.")
def delete(zone: str, force: bool) -> None:
    """Delete a child zone from this one; the child itself is not changed.

    Refused while leases have hosts there, and while builds wait for its answer.
    """
    session = current()
    query = {"force": "true"} if force else {}
    session.client.call("compute", "DELETE", f"/zones/{_zone(session, zone)['id']}", params=query)


def _zones(session: Session) -> "list[ChildZone]":
    known: list[ChildZone] = session.client.json("compute", "GET", "/zones/detail")["zones"]
    return known


def _zone(session: Session, wanted: str) -> "ChildZone":
    return lookup.only("zone", wanted, _zones(session))


def _without_none(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _password(session: Session) -> str:
    given = session.environ.get(PASSWORD)
    return given or str(click.prompt("password", hide_input=session.interactive, err=True))
