"""Aggregates, for administrators: groups of nodes with metadata; pools of leases are among them."""

from collections.abc import Callable, Mapping

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.nodes.aggregate_bodies import AGGREGATE_ACTIONS, CHANGED, NEW
from api.request_context import compute
from climate.compute.models.aggregate import Aggregate
from climate.compute.nodes import aggregates
from climate.domain.errors import NotFound
from climate.whole_numbers import whole_number

Body = dict[str, object]

blueprint = compute_blueprint("aggregates")


@blueprint.get("/os-aggregates")
def listing() -> Body:
    """List all aggregates."""
    validation.may_administer()
    return {"aggregates": [_view(aggregate) for aggregate in aggregates.listed(compute())]}


@blueprint.post("/os-aggregates")
def create() -> Body:
    """Create an aggregate, with an availability zone if one is given."""
    validation.may_administer()
    wanted = NEW.read(read_object())
    made = _view(aggregates.create(audited(), wanted["name"], wanted["availability_zone"]))
    # Nova leaves these out of this answer alone, and strict clients refuse them.
    return {"aggregate": {key: value for key, value in made.items() if key not in ("hosts", "metadata")}}


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
    wanted = CHANGED.read(read_object())
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
    number = _number(aggregate_id)
    action, given = AGGREGATE_ACTIONS.read(read_object())
    return _answer(ACTIONS[action](audited(), number, *given.values()))


ACTIONS: Mapping[str, Callable[..., Aggregate]] = {
    "add_host": aggregates.add_host,
    "remove_host": aggregates.remove_host,
    "set_metadata": aggregates.set_metadata,
}


def _number(text: str) -> int:
    number = whole_number(text, 9)
    if number is None:
        raise NotFound(f"Aggregate {text[:80]} could not be found.")
    return number


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
