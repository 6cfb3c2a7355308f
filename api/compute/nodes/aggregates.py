"""Aggregates, for administrators: groups of nodes with metadata; pools of leases are among them."""

from collections.abc import Callable, Mapping
from typing import Any

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.openapi.aggregate_bodies import CHANGED, NEW
from api.request_context import compute
from climate.compute.models.aggregate import Aggregate
from climate.compute.nodes import aggregates
from climate.domain.errors import InvalidInput, NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("aggregates")


@blueprint.get("/os-aggregates")
def listing() -> Body:
    """List all aggregates."""
    validation.may_administer()
    return {"aggregates": [_view(found) for found in aggregates.listed(compute())]}


@blueprint.post("/os-aggregates")
def create() -> Body:
    """Create an aggregate, with an availability zone if one is given."""
    validation.may_administer()
    wanted = NEW.read(validation.part(read_object(), "aggregate"))
    return _answer(aggregates.create(audited(), wanted["name"], wanted["availability_zone"]))


@blueprint.get("/os-aggregates/<aggregate_id>")
def show(aggregate_id: str) -> Body:
    """Show one aggregate by its number; names are not accepted."""
    validation.may_administer()
    return _answer(aggregates.get(compute(), _number(aggregate_id)))


@blueprint.put("/os-aggregates/<aggregate_id>")
def update(aggregate_id: str) -> Body:
    """Update the name or the availability zone of an aggregate."""
    validation.may_administer()
    number = _number(aggregate_id)
    body = validation.part(read_object(), "aggregate")
    if not body:
        raise InvalidInput("aggregate must hold name, availability_zone, or both")
    wanted = CHANGED.read(body)
    return _answer(aggregates.update(audited(), number, wanted.get("name"), wanted["availability_zone"]))


@blueprint.delete("/os-aggregates/<aggregate_id>")
def delete(aggregate_id: str) -> tuple[str, int]:
    """Delete an aggregate that has no hosts."""
    validation.may_administer()
    aggregates.delete(audited(), _number(aggregate_id))
    return "", 200


@blueprint.post("/os-aggregates/<aggregate_id>/action")
def act(aggregate_id: str) -> Body:
    """Add a host, remove one, or update the metadata."""
    validation.may_administer()
    number, body = _number(aggregate_id), read_object()
    action = next(iter(body), "")
    if len(body) != 1 or action not in ACTIONS:
        raise InvalidInput(f"The body must hold one action of {', '.join(ACTIONS)}")
    return _answer(ACTIONS[action](number, validation.part(body, action)))


def _add_host(number: int, body: Body) -> Aggregate:
    return aggregates.add_host(audited(), number, validation.name(body.get("host"), "host"))


def _remove_host(number: int, body: Body) -> Aggregate:
    return aggregates.remove_host(audited(), number, validation.name(body.get("host"), "host"))


def _set_metadata(number: int, body: Body) -> Aggregate:
    changes = body.get("metadata")
    if not isinstance(changes, dict):
        raise InvalidInput("metadata must be an object of texts; null deletes a key")
    kept = validation.metadata({key: "" if value is None else value for key, value in changes.items()})
    dropped = {key: None for key, value in changes.items() if value is None}
    return aggregates.set_metadata(audited(), number, {**kept, **dropped})


ACTIONS: Mapping[str, Callable[[int, Body], Aggregate]] = {
    "add_host": _add_host,
    "remove_host": _remove_host,
    "set_metadata": _set_metadata,
}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound(f"Aggregate {text[:80]} could not be found.")
    return int(text)


def _answer(aggregate: Aggregate) -> Body:
    return {"aggregate": _view(aggregate)}


def _view(aggregate: Aggregate) -> Body:
    seen: Body = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.zone,
        "hosts": list(aggregate.nodes),
        "metadata": dict(aggregate.metadata),
        "created_at": f"{aggregate.created_at:%Y-%m-%dT%H:%M:%S.%f}",
        "updated_at": f"{aggregate.updated_at:%Y-%m-%dT%H:%M:%S.%f}",
        "deleted": False,
        "deleted_at": None,
    }
    return seen | ({"uuid": aggregate.uuid} if since(41) else {})
