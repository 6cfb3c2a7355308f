"""climate credential: application credentials, with which programs sign in for a user in one project."""

from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.accounts import identity_requests
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.dates import Moment, MomentType, wire
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.identity import Credential

COLUMNS = ("id", "name", "roles", "expires_at", "unrestricted", "project_id", "description")
KEY = "application_credential"


@click.group("credential")
def group() -> None:
    """Your application credentials, with which programs sign in."""


@group.command("create")
@click.argument("name")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="Only this role; repeatable. By default all yours."
)
@click.option("--expiration", type=MomentType(), help="Time at which it expires; by default it does not.")
@click.option("--description", help="Description of the credential.")
@click.option("--unrestricted", is_flag=True, help="It may create and delete further credentials.")
@output_options
def create(name: str, roles: tuple[str, ...], expiration: Moment | None, **options: str | bool | None) -> None:
    """Create a credential for you in the project of the cloud; its secret is shown once."""
    session = current()
    client = session.client
    body: dict[str, object] = {"name": name, **{key: value for key, value in options.items() if value}}
    if roles:
        body["roles"] = [{"id": identity_requests.find(client, "role", role)["id"]} for role in roles]
    if expiration:
        body["expires_at"] = wire(expiration.when(client.now()))
    made: Credential = identity_requests.send(client, "POST", _path(client), json={KEY: body})[KEY]
    row = _row(made)
    session.show({"id": row["id"], "secret": made.get("secret"), **row})
    session.say("the secret is shown this once")


@group.command("list")
@listed
def list_() -> None:
    """List your credentials, without their secrets."""
    session = current()
    session.show_all([_row(one) for one in _listing(session.client)], COLUMNS)


@group.command("show")
@click.argument("credential")
@output_options
def show(credential: str) -> None:
    """Show one of your credentials by its id or its name, without its secret."""
    session = current()
    session.show(_row(_one(session.client, credential)))


@group.command("delete")
@click.argument("credentials", nargs=-1, required=True, metavar="CREDENTIAL...")
def delete(credentials: tuple[str, ...]) -> None:
    """Delete credentials, and revoke the tokens that were issued with them."""
    client = current().client
    for one in [_one(client, credential) for credential in credentials]:
        identity_requests.send(client, "DELETE", f"{_path(client)}/{lookup.part(one['id'])}")


def _listing(client: Client) -> "list[Credential]":
    known: list[Credential] = identity_requests.send(client, "GET", _path(client))[f"{KEY}s"]
    return known


def _one(client: Client, wanted: str) -> "Credential":
    return lookup.only("credential", wanted, _listing(client))


def _path(client: Client) -> str:
    return f"/users/{lookup.part(identity_requests.own_id(client))}/{KEY}s"


def _row(one: "Credential") -> dict[str, object]:
    return {
        **{name: one.get(name) for name in COLUMNS},
        "roles": " ".join(role["name"] for role in one.get("roles") or ()),
    }
