"""Aggregates: the pools of nodes, for administrators to look at; the reservation API moves nodes between them."""

from typing import Any

from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import compute
from climate.compute.aggregate import Aggregate
from climate.compute.store import pools
from climate.domain.errors import NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("aggregates")


@blueprint.get("/os-aggregates")
def listing() -> Body:
    """All pools."""
    asked.may_administer()
    with compute().engine.connect() as conn:
        return {"aggregates": [_view(found) for found in pools.listed(conn)]}


@blueprint.get("/os-aggregates/<aggregate_id>")
def show(aggregate_id: str) -> Body:
    """One pool, by its number; a name is nobody's."""
    asked.may_administer()
    if aggregate_id.isascii() and aggregate_id.isdigit() and len(aggregate_id) < 10:
        with compute().engine.connect() as conn:
            for found in pools.listed(conn, int(aggregate_id)):
                return {"aggregate": _view(found)}
    raise NotFound(f"Aggregate {aggregate_id[:80]} could not be found.")


def _view(aggregate: Aggregate) -> Body:
    seen: Body = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": None,
        "hosts": list(aggregate.nodes),
        "metadata": dict(aggregate.metadata),
        "created_at": f"{aggregate.created_at:%Y-%m-%dT%H:%M:%S.%f}",
        "updated_at": f"{aggregate.updated_at:%Y-%m-%dT%H:%M:%S.%f}",
        "deleted": False,
        "deleted_at": None,
    }
    return seen | ({"uuid": aggregate.uuid} if since(41) else {})
