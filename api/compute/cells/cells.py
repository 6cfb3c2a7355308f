"""Routes of neighbouring cells, for administrators: create, update, delete and list them with their reports."""

from collections.abc import Mapping
from datetime import datetime

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import cell_bodies
from api.request_context import compute
from api.schema.body import Values
from climate.compute.cells import backlog, neighbours, removal
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.servers import methods
from climate.compute.cells.servers.methods import SYNC
from climate.compute.cells.state import state
from climate.domain.errors import InvalidInput

Body = dict[str, object]

blueprint = compute_blueprint("cells")


@blueprint.get("/os-cells")
def listing() -> Body:
    """List the neighbours of this cell."""
    validation.may_administer()
    return {"cells": [_view(cell) for cell in neighbours.listed(compute())]}


@blueprint.get("/os-cells/detail")
def detailed() -> Body:
    """List the neighbours with their capacities, the age of their last message, and the messages waiting for them."""
    validation.may_administer()
    messages, views = backlog.read(compute()), []
    for cell in neighbours.listed(compute()):
        waiting = {"waiting": messages.count(cell.name), "oldest_age": round(messages.oldest_age(cell.name), 1)}
        views.append(_detailed(cell, messages.now) | {"messages": waiting})
    return {"cells": views}


@blueprint.get("/os-cells/info")
def info() -> Body:
    """Show this cell."""
    validation.may_administer()
    options = compute().cells
    own = {"name": options.name, "type": "self", "rpc_host": None, "rpc_port": 0, "username": None}
    return {"cell": own | {"capabilities": _words(options.capabilities), "cell_type": options.type}}


@blueprint.get("/os-cells/capacities")
def all_capacities() -> Body:
    """List the capacities of this cell and of all cells below it."""
    validation.may_administer()
    return {"cell": {"capacities": state.capacities_of(compute())}}


@blueprint.post(f"/os-cells/{SYNC}")
def sync() -> tuple[str, int]:
    """Request a report of their servers from all cells below."""
    validation.may_administer()
    kwargs = cell_bodies.SYNC.read(read_object())
    methods.request_sync(compute(), kwargs)
    return "", 204


@blueprint.get("/os-cells/<name>")
def show(name: str) -> Body:
    """Show one neighbour."""
    validation.may_administer()
    return {"cell": _view(neighbours.get(compute(), name))}


@blueprint.get("/os-cells/<name>/capacities")
def capacities(name: str) -> Body:
    """List the capacities of a neighbour and of all cells below it."""
    validation.may_administer()
    return {"cell": {"capacities": state.capacities_of(compute(), name)}}


@blueprint.post("/os-cells")
def create() -> Body:
    """Create a neighbour; nothing is sent to it yet."""
    validation.may_administer()
    fields, broker = _fields()
    cell = Cell(**{"name": None, **fields}, broker=Broker(**broker))
    return {"cell": _view(neighbours.create(audited(), cell))}


@blueprint.put("/os-cells/<name>")
def update(name: str) -> Body:
    """Update a neighbour; absent keys keep their values."""
    validation.may_administer()
    fields, broker = _fields()
    if (given := fields.pop("name", name)) != name:
        raise InvalidInput(f"A cell cannot be renamed, got name {str(given)[:80]!r}; delete it and add another")
    return {"cell": _view(neighbours.change(audited(), name, fields, broker))}


@blueprint.delete("/os-cells/<name>")
def delete(name: str) -> tuple[str, int]:
    """Delete a neighbour and its waiting messages; servers or builds of the neighbour require `force`."""
    validation.may_administer()
    removal.remove(audited(), name, force=validation.query_flag("force"))
    return "", 204


def _fields() -> tuple[Values, Values]:
    """Return the fields of the cell and the fields of its broker that the body has."""
    body = cell_bodies.CELL.read(read_object())
    broker = {name: value for name, value in body.items() if name in cell_bodies.BROKER}
    return {name: value for name, value in body.items() if name not in broker}, broker


def _view(cell: Cell) -> Body:
    return {
        "name": cell.name,
        "username": cell.broker.username,
        "rpc_host": cell.broker.host,
        "rpc_port": cell.broker.port,
        "type": "parent" if cell.is_parent else "child",
    }


def _detailed(cell: Cell, now: datetime) -> Body:
    described = state.described(compute(), cell, now)
    return {
        **_view(cell),
        "capabilities": _words(cell.capabilities),
        "weight_offset": cell.weight_offset,
        "weight_scale": cell.weight_scale,
        "state": "unreachable" if cell.failures else described["state"],
        "age": described["age"],
        "last_error": cell.last_error,
        "children": described["children"],
    }


def _words(capabilities: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {key: ";".join(values) for key, values in capabilities.items()}
