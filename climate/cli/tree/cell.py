"""climate cell: the neighbours of this cell, and the tree of cells below it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.errors import ERROR, Failure
from climate.cli.operations.journal import with_stores
from climate.cli.options import exactly_one, listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.client import Client
    from climate.cli.response_types.zones import Capacities, ListedCell, Neighbour

COLUMNS = ("name", "type", "state", "age", "free_ram_mb", "rpc_host", "rpc_port", "messages", "last_error")
ASKED = ("password", "secret", "transport_url")
"""Fields that are prompted for or read from standard input, because others can read the command line."""


class LinkOptions(TypedDict):
    """Options for the broker of a neighbour, and for its weight."""

    host: str | None
    port: int | None
    database: str | None
    username: str | None
    weight_offset: float | None
    weight_scale: float | None


@click.group("cell")
def group() -> None:
    """Cells: parents and children of this deployment (administrator)."""


@group.command("list")
@listed
def list_() -> None:
    """List neighbours with their state, and the age of their last message in seconds."""
    session = current()
    rows: list[Neighbour] = session.client.json("compute", "GET", "/os-cells/detail")["cells"]
    session.show_all([_row(session.client, row) for row in rows], COLUMNS)


@group.command("show")
@click.argument("cell")
@output_options
def show(cell: str) -> None:
    """Show a neighbour."""
    session = current()
    session.show(session.client.json("compute", "GET", f"/os-cells/{lookup.part(cell)}")["cell"])


@group.command("add")
@click.argument("name")
@click.option("--parent", "parent", is_flag=True, default=None, help="The neighbour is the parent of this cell.")
@click.option("--child", "child", is_flag=True, default=None, help="The neighbour is a child of this cell.")
@click.option("--host", help="Host of its broker.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of its broker.")
@click.option("--database", help="Number of the database in its broker.")
@click.option("--username", help="User name for its broker.")
@click.option(
    "--ask", multiple=True, type=click.Choice(ASKED), help="Name of a field that is prompted for; repeatable."
)
@click.option("--weight-offset", type=float, help="Offset of its weight; a large one makes it the default cell.")
@click.option("--weight-scale", type=float, help="Multiplier of the weight of its room.")
@click.option("--local", is_flag=True, help="Write to the database directly; the web process need not run.")
@output_options
def add(
    name: str,
    parent: bool | None,
    child: bool | None,
    local: bool,
    ask: Sequence[str],
    **link: Unpack[LinkOptions],
) -> None:
    """Create a neighbour.  Both ends of a link need the same secret: `--ask secret`.

    Values of --ask are prompted for, or read from standard input, one a line.
    """
    exactly_one(("--parent", "--child"), parent, child)
    if local:
        _add_here(name, bool(parent), link, ask)
        return
    body = {"name": name, "type": "parent" if parent else "child", **_link(link), **_prompted(ask)}
    session = current()
    session.show(session.client.json("compute", "POST", "/os-cells", json={"cell": body})["cell"])


def _add_here(name: str, is_parent: bool, link: LinkOptions, ask: Sequence[str]) -> None:
    from climate.adapters import neighbour_storage

    address = {
        "host": link["host"],
        "port": link["port"],
        "virtual_host": link["database"],
        "username": link["username"],
    }
    broker = {key: value for key, value in address.items() if value is not None} | _prompted(ask)
    offset, scale = link["weight_offset"], link["weight_scale"]
    weights = {} if offset is None else {"weight_offset": offset}
    weights |= {} if scale is None else {"weight_scale": scale}
    session = current()
    try:
        neighbour_storage.store(
            with_stores(session.settings), neighbour_storage.Link(name, is_parent, broker, **weights)
        )
    except neighbour_storage.LinkRefused as refusal:
        raise Failure(str(refusal), ERROR, "`climate cell add --help` lists the fields") from None
    session.show({"name": name, "type": "parent" if is_parent else "child"})


@group.command("set")
@click.argument("cell")
@click.option("--host", help="Host of its broker.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of its broker.")
@click.option("--database", help="Number of the database in its broker.")
@click.option("--username", help="User name for its broker.")
@click.option(
    "--ask", multiple=True, type=click.Choice(ASKED), help="Name of a field that is prompted for; repeatable."
)
@click.option("--weight-offset", type=float, help="Offset of its weight; a large one makes it the default cell.")
@click.option("--weight-scale", type=float, help="Multiplier of the weight of its room.")
@output_options
def set_(cell: str, ask: Sequence[str], **link: Unpack[LinkOptions]) -> None:
    """Update a neighbour; absent options keep their values."""
    session = current()
    body = {"cell": {**_link(link), **_prompted(ask)}}
    session.show(session.client.json("compute", "PUT", f"/os-cells/{lookup.part(cell)}", json=body)["cell"])


@group.command("delete")
@click.argument("cell")
@click.option(
    "--force", is_flag=True, help="Delete it despite its servers, and despite builds that wait for it and then fail."
)
def delete(cell: str, force: bool) -> None:
    """Delete a neighbour and its waiting messages."""
    query = "?force=true" if force else ""
    current().client.call("compute", "DELETE", f"/os-cells/{lookup.part(cell)}{query}")


@group.command("capacities")
@click.argument("cell", required=False)
@output_options
def capacities(cell: str | None) -> None:
    """Show the capacities of a CELL and all cells below it, or of this cell and all cells below it."""
    session = current()
    path = f"/os-cells/{lookup.part(cell)}/capacities" if cell else "/os-cells/capacities"
    session.show(session.client.json("compute", "GET", path)["cell"]["capacities"])


@group.command("sync")
@click.option("--project", help="Only servers of this project.")
def sync(project: str | None) -> None:
    """Request a report of their servers from all cells below."""
    body = {"project_id": project} if project else {}
    current().client.call("compute", "POST", "/os-cells/sync_instances", json=body)


@group.command("tree")
def tree() -> None:
    """Show the cells below this one: state, free memory in MB, age of the last message in seconds."""
    client = current().client
    own: ListedCell = client.json("compute", "GET", "/os-cells/info")["cell"]
    known: list[Neighbour] = client.json("compute", "GET", "/os-cells/detail")["cells"]
    below: list[Neighbour] = [
        {**cell, "capacities": _capacities(client, cell["name"])} for cell in known if cell["type"] == "child"
    ]
    click.echo(own["name"])
    for line in lines(below):
        click.echo(line)


def lines(cells: "Sequence[ListedCell]", indent: str = "") -> Iterator[str]:
    """Yield the lines of a tree of cells."""
    for index, cell in enumerate(cells):
        is_last = index == len(cells) - 1
        heard = cell.get("age")
        age = "never heard" if heard is None else f"{heard:g} s"
        free = _free_ram(cell.get("capacities") or {})
        yield f"{indent}{'└─' if is_last else '├─'} {cell['name']}  {cell.get('state')}  {free} MB free  {age}"
        yield from lines(cell.get("children") or (), indent + ("   " if is_last else "│  "))


def _row(client: "Client", cell: "Neighbour") -> dict[str, object]:
    free = _free_ram(_capacities(client, cell["name"])) if cell["type"] == "child" else None
    return {**cell, "free_ram_mb": free, "messages": cell["messages"]["waiting"]}


def _capacities(client: "Client", name: str) -> "Capacities":
    answer = client.json("compute", "GET", f"/os-cells/{lookup.part(name)}/capacities")
    found: Capacities = answer["cell"]["capacities"]
    return found


def _free_ram(found: "Capacities") -> int:
    free = found.get("ram_free")
    return free.get("total_mb", 0) if free else 0


def _link(given: Mapping[str, object]) -> dict[str, object]:
    names = {"host": "rpc_host", "port": "rpc_port", "database": "rpc_virtual_host"}
    return {names.get(key, key): value for key, value in given.items() if value is not None}


def _prompted(ask: Sequence[str]) -> dict[str, str]:
    session = current()
    return {name: click.prompt(name, hide_input=session.interactive, err=True) for name in ask}
