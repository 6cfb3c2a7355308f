"""Requests to the Identity API, and lookup of users, projects and roles by name or id."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.client import Client, Json
from climate.cli.connection.http_protocols import Sent

if TYPE_CHECKING:
    from climate.cli.response_types.identity import Account


def send(client: Client, method: str, path: str, **sent: Unpack[Sent]) -> Json:
    """Return the JSON object in the answer of Identity; {} if the answer is empty."""
    return client.body(client.request(method, f"{client.identity}{path}", **sent))


def listing(client: Client, noun: str) -> "list[Account]":
    """Return all users, projects or roles that the caller may see: of projects, the own ones or all."""
    place = "" if noun != "project" or _reads_all(client) else "/auth"
    return list(send(client, "GET", f"{place}/{noun}s")[f"{noun}s"])


def _reads_all(client: Client) -> bool:
    """Return whether the token is one of an administrator, or of the whole system."""
    token = client.token.body
    return "system" in token or any(role["name"] == "admin" for role in token.get("roles", ()))


def find(client: Client, noun: str, wanted: str) -> "Account":
    """Return a user, project or role by its id or name."""
    return lookup.only(noun, wanted, listing(client, noun))


def find_user(client: Client, wanted: str) -> "Account":
    """Return a user by its id or name; callers find themselves without the list, which administrators may see."""
    own = client.token.body.get("user")
    if own and wanted in (own.get("id"), own.get("name")):
        found: Account = send(client, "GET", f"/users/{lookup.part(own['id'])}")["user"]
        return found
    return find(client, "user", wanted)


def own_id(client: Client) -> str:
    """Return the id of the caller."""
    return str(client.token.body["user"]["id"])


def given_options(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of the options that were given; a usage error if there are none."""
    changes = {name: value for name, value in values.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change: give at least one option")
    return changes
