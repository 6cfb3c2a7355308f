"""climate project: projects, which own leases and servers."""

from collections.abc import Mapping

import click

from climate.cli import lookup
from climate.cli.accounts import identity_requests
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

COLUMNS = ("id", "name", "enabled", "description")


@click.group("project")
def group() -> None:
    """Projects, which own leases and servers."""


@group.command("create")
@click.argument("name")
@click.option("--description", help="Description of the project.")
@click.option("--enable/--disable", "enabled", default=None, help="State; users of a disabled project get no token.")
@output_options
def create(name: str, **options: str | bool | None) -> None:
    """Create a project (administrator)."""
    body = {"name": name, **{key: value for key, value in options.items() if value is not None}}
    _show(identity_requests.send(current().client, "POST", "/projects", json={"project": body})["project"])


@group.command("list")
@listed
def list_() -> None:
    """List projects; for other users than administrators, those in which they have a role."""
    session = current()
    session.show_all(identity_requests.listing(session.client, "project"), COLUMNS)


@group.command("show")
@click.argument("project")
@output_options
def show(project: str) -> None:
    """Show a project by its id or its name."""
    _show(identity_requests.find(current().client, "project", project))


@group.command("set")
@click.argument("project")
@click.option("--name", help="New name.")
@click.option("--description", help="New description.")
@click.option("--enable/--disable", "enabled", default=None, help="State; --disable revokes the tokens of the project.")
@output_options
def set_(project: str, **options: str | bool | None) -> None:
    """Update a project (administrator)."""
    changes = identity_requests.given_options(options)
    client = current().client
    path = f"/projects/{lookup.part(identity_requests.find(client, 'project', project)['id'])}"
    _show(identity_requests.send(client, "PATCH", path, json={"project": changes})["project"])


@group.command("delete")
@click.argument("projects", nargs=-1, required=True, metavar="PROJECT...")
def delete(projects: tuple[str, ...]) -> None:
    """Delete projects that have no resources, with their roles and application credentials (administrator)."""
    client = current().client
    for project_id in [identity_requests.find(client, "project", project)["id"] for project in projects]:
        identity_requests.send(client, "DELETE", f"/projects/{lookup.part(project_id)}")


def _show(project: Mapping[str, object]) -> None:
    current().show({name: project.get(name) for name in COLUMNS})
