"""climate user: users, who sign in with a password."""

from collections.abc import Mapping

import click

from climate.cli import lookup
from climate.cli.accounts import identity_requests, password_options
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

COLUMNS = ("id", "name", "enabled", "email", "description", "default_project_id")


@click.group("user")
def group() -> None:
    """Users, who sign in with a password."""


@group.command("create")
@click.argument("name")
@click.option("--project", help="Default project, by id or name.")
@click.option("--role", metavar="ROLE", help="Also assign this role in that project.")
@click.option("--email", help="Email address.")
@click.option("--description", help="Description of the user.")
@click.option("--enable/--disable", "enabled", default=None, help="State; a disabled user gets no token.")
@click.option("--no-password", is_flag=True, help="No password: the user cannot sign in before it is set.")
@password_options.password_options
@output_options
def create(
    name: str,
    project: str | None,
    role: str | None,
    no_password: bool,
    password_prompt: bool,
    password_file: str | None,
    **options: str | bool | None,
) -> None:
    """Create a user; without an option for the password, a random one is shown once (administrator)."""
    if no_password and (password_prompt or password_file is not None):
        raise click.UsageError("give no other option for the password with --no-password")
    if role and not project:
        raise click.UsageError("--role needs --project")
    client = current().client
    place = _id_of(client, "project", project)
    role_id = _id_of(client, "role", role)
    password = password_options.chosen(password_prompt, password_file)
    new = None if password or no_password else password_options.generated()
    body = identity_requests.given_options(
        {"name": name, **options, "default_project_id": place, "password": password or new}
    )
    user = identity_requests.send(client, "POST", "/users", json={"user": body})["user"]
    if role_id:
        _assign(client, user["id"], str(place), role_id)
    _show(user, new)


@group.command("list")
@click.option("--project", help="Only users with a role in this project, by id or name.")
@listed
def list_(project: str | None) -> None:
    """List users (administrator)."""
    session = current()
    users = identity_requests.listing(session.client, "user")
    if project:
        place = identity_requests.find(session.client, "project", project)["id"]
        query = {"scope.project.id": place}
        rows = identity_requests.send(session.client, "GET", "/role_assignments", params=query)["role_assignments"]
        there = {row.get("user", {}).get("id") for row in rows}
        users = [user for user in users if user["id"] in there]
    session.show_all(users, COLUMNS)


@group.command("show")
@click.argument("user")
@output_options
def show(user: str) -> None:
    """Show a user by its id or its name; other users than administrators see themselves only."""
    _show(identity_requests.find_user(current().client, user))


@group.command("set")
@click.argument("user")
@click.option("--name", help="New name.")
@click.option("--project", help="New default project, by id or name; it assigns no role.")
@click.option("--email", help="New email address.")
@click.option("--description", help="New description.")
@click.option("--enable/--disable", "enabled", default=None, help="State; --disable revokes the tokens of the user.")
@click.option("--generate-password", is_flag=True, help="Set a random password, and show it once.")
@password_options.password_options
@output_options
def set_(
    user: str,
    project: str | None,
    generate_password: bool,
    password_prompt: bool,
    password_file: str | None,
    **options: str | bool | None,
) -> None:
    """Update a user; a new password revokes its tokens (administrator)."""
    if generate_password and (password_prompt or password_file is not None):
        raise click.UsageError("give one option for the password")
    new = password_options.generated() if generate_password else None
    password = new or password_options.chosen(password_prompt, password_file)
    changes: Mapping[str, object] = {**options, "password": password, "default_project_id": project}
    body = identity_requests.given_options(changes)
    client = current().client
    if project:
        body["default_project_id"] = identity_requests.find(client, "project", project)["id"]
    path = f"/users/{lookup.part(identity_requests.find_user(client, user)['id'])}"
    _show(identity_requests.send(client, "PATCH", path, json={"user": body})["user"], new)


@group.command("delete")
@click.argument("users", nargs=-1, required=True, metavar="USER...")
def delete(users: tuple[str, ...]) -> None:
    """Delete users; what they created stays with their projects (administrator)."""
    client = current().client
    for user_id in [identity_requests.find_user(client, user)["id"] for user in users]:
        identity_requests.send(client, "DELETE", f"/users/{lookup.part(user_id)}")


def _id_of(client: Client, noun: str, wanted: str | None) -> str | None:
    """Return the id of the project or role that an option names; None without the option."""
    return str(identity_requests.find(client, noun, wanted)["id"]) if wanted else None


def _assign(client: Client, user_id: str, project_id: str, role_id: str) -> None:
    parts = [lookup.part(one) for one in (project_id, user_id, role_id)]
    identity_requests.send(client, "PUT", "/projects/{}/users/{}/roles/{}".format(*parts))


def _show(user: Mapping[str, object], password: str | None = None) -> None:
    """Print a user, with a password that was generated for it."""
    more = {} if password is None else {"password": password}
    current().show({**{name: user.get(name) for name in COLUMNS}, **more})
    if password is not None:
        password_options.print_once_hint()
