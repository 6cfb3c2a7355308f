"""Neighbours of this cell, for administrators: added, changed, listed with what they have reported."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.request_context import compute
from climate.compute.cells import messaging, neighbours, removal, state
from climate.compute.cells.cell import Broker, Cell
from climate.compute.cells.messages import DOWN
from climate.compute.store.cells import messages as cell_messages
from climate.connections import reading
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = compute_blueprint("cells")

TYPES = {"parent": True, "child": False}
TEXTS = ("username", "password", "rpc_host", "rpc_virtual_host", "transport_url", "secret")
BROKER = {"rpc_host": "host", "rpc_port": "port", "rpc_virtual_host": "virtual_host"}
"""Keys that are called otherwise in a Broker."""

WEIGHTS = ("weight_offset", "weight_scale")
KEYS = frozenset({"name", "type", "rpc_port", *TEXTS, *WEIGHTS})
SYNC = "sync_instances"
"""The method that has cells below report their servers; also the key of the route."""

SYNC_KEYS = frozenset({"project_id", "updated_since", "deleted"})
LARGEST_WEIGHT = 1e12

_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,255}")
_DATABASE = re.compile(r"\d{1,5}")
_URL = re.compile(r"(redis|rediss|unix)://\S{1,1000}")


@blueprint.get("/os-cells")
def listing() -> Body:
    """The neighbours of this cell."""
    validation.may_administer()
    return {"cells": [_view(cell) for cell in neighbours.listed(compute())]}


@blueprint.get("/os-cells/detail")
def detailed() -> Body:
    """The neighbours with what they report, the age of their last word, and the messages that wait for them."""
    validation.may_administer()
    with reading(compute().engine) as conn:
        now, waiting = compute().now(conn), cell_messages.counts(conn)
    found = []
    for cell in neighbours.listed(compute()):
        count, since = waiting.get(cell.name, (0, now))
        messages = {"waiting": count, "oldest_age": round((now - since).total_seconds(), 1)}
        found.append(_detailed(cell, now) | {"messages": messages})
    return {"cells": found}


@blueprint.get("/os-cells/info")
def info() -> Body:
    """This cell itself."""
    validation.may_administer()
    options = compute().cells
    own = {"name": options.name, "type": "self", "rpc_host": None, "rpc_port": 0, "username": None}
    return {"cell": own | {"capabilities": _words(options.capabilities), "cell_type": options.type}}


@blueprint.get("/os-cells/capacities")
def all_capacities() -> Body:
    """The capacities of this cell and all cells below it."""
    validation.may_administer()
    return {"cell": {"capacities": state.capacities_of(compute())}}


@blueprint.post(f"/os-cells/{SYNC}")
def sync() -> tuple[str, int]:
    """Have all cells below report their servers at once."""
    validation.may_administer()
    wanted = read_object()
    unknown = sorted(set(wanted) - SYNC_KEYS)
    if unknown:
        raise InvalidInput(f"there is no key {unknown[0][:80]!r}; there are {', '.join(sorted(SYNC_KEYS))}")
    kwargs: Body = {}
    if "project_id" in wanted:
        kwargs["project_id"] = validation.name(wanted["project_id"], "project_id")
    if "updated_since" in wanted:
        kwargs["updated_since"] = _time(wanted["updated_since"])
    if "deleted" in wanted:
        kwargs["deleted"] = validation.flag(wanted["deleted"], "deleted")
    with compute().engine.begin() as conn:
        messaging.broadcast(compute(), conn, DOWN, SYNC, kwargs)
    return "", 204


@blueprint.get("/os-cells/<name>")
def show(name: str) -> Body:
    """One neighbour."""
    validation.may_administer()
    return {"cell": _view(neighbours.get(compute(), name))}


@blueprint.get("/os-cells/<name>/capacities")
def capacities(name: str) -> Body:
    """The capacities of a neighbour and all cells below it."""
    validation.may_administer()
    return {"cell": {"capacities": state.capacities_of(compute(), name)}}


@blueprint.post("/os-cells")
def create() -> Body:
    """Add a neighbour; nothing is sent to it yet."""
    validation.may_administer()
    given = _given()
    fields, broker = _fields(given)
    cell = Cell(**{"name": given.get("name"), **fields}, broker=Broker(**broker))
    return {"cell": _view(neighbours.create(compute(), cell))}


@blueprint.put("/os-cells/<name>")
def update(name: str) -> Body:
    """Change a neighbour; what is not named stays as it is."""
    validation.may_administer()
    given = _given()
    if given.get("name", name) != name:
        raise InvalidInput(f"A cell cannot be renamed, got name {str(given['name'])[:80]!r}; delete it and add another")
    fields, broker = _fields(given)
    return {"cell": _view(neighbours.change(compute(), name, fields, broker))}


@blueprint.delete("/os-cells/<name>")
def delete(name: str) -> tuple[str, int]:
    """Delete a neighbour and the messages that wait for it; with servers or builds only by `force`."""
    validation.may_administer()
    removal.remove(compute(), name, force=validation.query_flag("force"))
    return "", 204


def _given() -> Body:
    given = validation.part(read_object(), "cell")
    unknown = sorted(set(given) - KEYS)
    if unknown:
        raise InvalidInput(f"cell: there is no key {unknown[0][:80]!r}; there are {', '.join(sorted(KEYS))}")
    return given


def _fields(given: Body) -> tuple[Body, Body]:
    """(fields of the cell, fields of its broker) that are given."""
    fields: Body = {key: _weight(given[key], key) for key in WEIGHTS if key in given}
    if "type" in given:
        if given["type"] not in tuple(TYPES):
            raise InvalidInput(f"cell: type must be parent or child, got {str(given['type'])[:40]!r}")
        fields["is_parent"] = TYPES[given["type"]]
    broker: Body = {BROKER.get(key, key): _text(given[key], key) for key in TEXTS if key in given}
    if "rpc_port" in given:
        port = given["rpc_port"]
        broker["port"] = None if port is None else validation.count(port, "rpc_port", 1, 65535)
    return fields, broker


def _text(value: Any, key: str) -> str | None:
    """A text of the connection; None and an empty one: there is none."""
    if value in (None, ""):
        return None
    if not isinstance(value, str) or len(value) > 1024 or not value.isprintable():
        raise InvalidInput(f"cell: {key} must be one line of at most 1024 characters, or null")
    if key == "rpc_host" and not _HOST.fullmatch(value):
        raise InvalidInput(f"cell: rpc_host must be a host name or an IP address, got {value[:80]!r}")
    if key == "rpc_virtual_host" and not _DATABASE.fullmatch(value):
        raise InvalidInput(f"cell: rpc_virtual_host must be the number of a database in Redis, got {value[:40]!r}")
    if key == "transport_url" and not _URL.fullmatch(value):
        raise InvalidInput("cell: transport_url must begin with redis://, rediss:// or unix://")
    return value


def _weight(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_WEIGHT:
        raise InvalidInput(f"cell: {key} must be a number, got {str(value)[:40]!r}")
    return float(value)


def _time(value: Any) -> str:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"updated_since must be a time like 2030-01-31T16:00:00Z, got {str(value)[:40]!r}") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).isoformat()


def _view(cell: Cell) -> Body:
    return {
        "name": cell.name,
        "username": cell.broker.username,
        "rpc_host": cell.broker.host,
        "rpc_port": cell.broker.port,
        "type": "parent" if cell.is_parent else "child",
    }


def _detailed(cell: Cell, now: datetime) -> Body:
    told = state.described(compute(), cell, now)
    return {
        **_view(cell),
        "capabilities": _words(cell.capabilities),
        "weight_offset": cell.weight_offset,
        "weight_scale": cell.weight_scale,
        "state": "unreachable" if cell.failures else told["state"],
        "age": told["age"],
        "last_error": cell.last_error,
        "children": told["children"],
    }


def _words(capabilities: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {key: ";".join(values) for key, values in capabilities.items()}
