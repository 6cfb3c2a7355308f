"""climate role: roles, and their assignments to users in projects."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from climate.cli import lookup
from climate.cli.accounts import identity_requests
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.identity import RoleAssignment

F = TypeVar("F", bound=Callable[..., object])


@click.group("role")
def group() -> None:
    """Roles, and their assignments to users in projects."""


def _where(command: F) -> F:
    """Add --user and --project."""
    user = click.option("--user", required=True, help="User, by id or name.")
    project = click.option("--project", required=True, help="Project, by id or name.")
    return user(project(command))


@group.command("list")
@listed
def list_() -> None:
    """List the roles."""
    session = current()
    session.show_all(identity_requests.listing(session.client, "role"), ("id", "name"))


@group.command("show")
@click.argument("role")
@output_options
def show(role: str) -> None:
    """Show a role by its id or its name."""
    session = current()
    one = identity_requests.find(session.client, "role", role)
    session.show({"id": one["id"], "name": one["name"]})


@group.command("add")
@click.argument("role")
@_where
def add(role: str, user: str, project: str) -> None:
    """Assign a role in a project to a user (administrator)."""
    client = current().client
    identity_requests.send(client, "PUT", _path(client, role, user, project))


@group.command("remove")
@click.argument("role")
@_where
def remove(role: str, user: str, project: str) -> None:
    """Remove a role in a project from a user, and revoke the user's tokens for that project (administrator)."""
    client = current().client
    identity_requests.send(client, "DELETE", _path(client, role, user, project))


@group.group("assignment")
def assignment() -> None:
    """Roles of users in projects."""


@assignment.command("list")
@click.option("--user", help="Only those of this user, by id or name; everybody may list their own.")
@click.option("--project", help="Only those in this project, by id or name.")
@click.option("--role", help="Only this role, by id or name.")
@listed
def list_assignments(user: str | None, project: str | None, role: str | None) -> None:
    """List the roles that users have in projects (administrator)."""
    session = current()
    client = session.client
    query = {"include_names": "1"}
    if user:
        query["user.id"] = identity_requests.find_user(client, user)["id"]
    if project:
        query["scope.project.id"] = identity_requests.find(client, "project", project)["id"]
    if role:
        query["role.id"] = identity_requests.find(client, "role", role)["id"]
    rows: list[RoleAssignment] = identity_requests.send(client, "GET", "/role_assignments", params=query)[
        "role_assignments"
    ]
    session.show_all([_flat(row) for row in rows], ("user", "project", "role"))


def _flat(row: "RoleAssignment") -> dict[str, object]:
    """Return the names of an assignment; groups and domains, which only Keystone has, stand in the same columns."""
    whose = row.get("user") or row.get("group") or {}
    scope: object = next(iter((row.get("scope") or {}).values()), None)
    place: dict[str, object] = scope if isinstance(scope, dict) else {}
    return {
        "user": whose.get("name"),
        "project": place.get("name"),
        "role": row["role"].get("name"),
        "user_id": whose.get("id"),
        "project_id": place.get("id"),
    }


def _path(client: Client, role: str, user: str, project: str) -> str:
    role_id = identity_requests.find(client, "role", role)["id"]
    user_id = identity_requests.find_user(client, user)["id"]
    project_id = identity_requests.find(client, "project", project)["id"]
    parts = [lookup.part(one) for one in (project_id, user_id, role_id)]
    return "/projects/{}/users/{}/roles/{}".format(*parts)
