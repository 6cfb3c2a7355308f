"""climate limit: limits of projects."""

import re
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.accounts import identity_requests
from climate.cli.connection.session import current
from climate.cli.dates import DECISIONS, Moment, MomentType, decisions, wire
from climate.cli.errors import NOT_FOUND, Failure
from climate.cli.options import dry, dry_run, listed, output_options
from climate.domain.limits import NO_LIMIT, Limit
from climate.whole_numbers import whole_number

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Decision

COLUMNS = ("name", "value", "used", "project_id", "says")
NAMES = [str(limit) for limit in Limit]
DEFAULT = "default"
"""Project whose limits apply to all without their own."""
PROJECT_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class BoundType(click.ParamType[tuple[str, int]]):
    """A click parameter for NAME=NUMBER of a limit."""

    name = "name=number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition("=")
        if name not in NAMES:
            self.fail(f"there is no limit {name!r}; there are {', '.join(NAMES)}", param, ctx)
        if number == "none":
            return name, NO_LIMIT
        limit = whole_number(number)
        if limit is None:
            self.fail(f"{value!r} is not NAME=NUMBER or NAME=none", param, ctx)
        return name, limit


@click.group("limit")
def group() -> None:
    """Limits of projects and their usage."""


@group.command("list")
@click.option("--all", "everyones", is_flag=True, help="Show the limits of all projects (administrator).")
@listed
def list_(everyones: bool) -> None:
    """List the limits of your project."""
    session = current()
    query = {"all": "true"} if everyones else {}
    session.show_all(session.client.json("reservation", "GET", "/limits", params=query)["limits"], COLUMNS)


@group.command("show")
@click.argument("project")
@click.option("--at", type=MomentType(), help="Show the limits at this time, without usage.")
@listed
def show(project: str, at: Moment | None) -> None:
    """Show the limits of a project by its id or name, or of `default` (administrator)."""
    session = current()
    query = {"at": wire(at.when(session.client.now()))} if at else {}
    session.show_all(
        session.client.json("reservation", "GET", _path(_any_project(project)), params=query)["limits"], COLUMNS
    )


@group.command("history")
@click.argument("project")
@listed
def history(project: str) -> None:
    """List the changes of limits of a project, or of `default`, with their authors (administrator)."""
    session = current()
    path = f"{_path(_any_project(project))}/history"
    lines: list[Decision] = session.client.json("reservation", "GET", path)["history"]
    session.show_all(decisions(lines, "limits"), DECISIONS)


@group.command("set")
@click.argument("project")
@click.argument("bounds", nargs=-1, required=True, type=BoundType(), metavar="NAME=NUMBER...")
@dry_run
@listed
def set_(project: str, bounds: tuple[tuple[str, int], ...], dry_run: bool) -> None:
    """Set limits of a project by its id or name, or of `default` (administrator); NAME=none removes one."""
    _put(_project(project), dict(bounds), dry_run)


@group.command("unset")
@click.argument("project")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="NAME...")
@dry_run
@output_options
def unset(project: str, names: tuple[str, ...], dry_run: bool) -> None:
    """Delete limits of a project, all without NAME; the default limits apply then (administrator)."""
    if names:
        _put(_any_project(project), dict.fromkeys(names), dry_run)
    else:
        current().client.call("reservation", "DELETE", _path(_any_project(project)), params=dry(dry_run))


def _put(project: str, bounds: dict[str, object], dry_run: bool) -> None:
    session = current()
    answer = session.client.json("reservation", "PUT", _path(project), json=bounds, params=dry(dry_run))
    session.show_all(answer["limits"], COLUMNS)


def _path(project: str) -> str:
    return f"/limits/{lookup.part(project)}"


def _project(wanted: str) -> str:
    """Return the id of a project by its id or name."""
    if wanted == DEFAULT or PROJECT_ID.fullmatch(wanted):
        return wanted
    return str(identity_requests.find(current().client, "project", wanted)["id"])


def _any_project(wanted: str) -> str:
    """Return the id of a project by its id or name; another text stays, because limits outlive their project."""
    try:
        return _project(wanted)
    except Failure as failure:
        if failure.code == NOT_FOUND:
            return wanted
        raise
