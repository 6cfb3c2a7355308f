"""Child zones, for administrators: create, list, update and delete them; and this zone as its parents see it."""

from datetime import datetime

from flask import Response, jsonify, request

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.zones import zone_chain
from api.compute.zones.zone_bodies import CHANGED, ZONE
from api.paging import MOST
from api.request_context import climate, compute
from climate.compute.errors import NotFound
from climate.compute.zones import registry
from climate.compute.zones.client_interface import ID_HEADER
from climate.compute.zones.models import ChildZone
from climate.domain.errors import InvalidInput
from climate.service.lease_tree import zone_removal
from climate.whole_numbers import whole_number

Body = dict[str, object]

blueprint = compute_blueprint("child-zones")

LOOP = "Requests to this zone come back to its parent, because it is above its parent in the tree"
LARGEST_ID = 2**31 - 1


@blueprint.get("/zones")
def listing() -> Body:
    """List the child zones."""
    return {"zones": [_view(zone) for zone in _page()]}


@blueprint.get("/zones/detail")
def detailed() -> Body:
    """List the child zones with the results of the last polls."""
    return {"zones": [_view(zone) | _polls(zone) for zone in _page()]}


@blueprint.get("/zones/info")
def info() -> Response:
    """Show this zone: its name and its capabilities."""
    validation.may_administer()
    answer = jsonify(zone=registry.info(compute()))
    answer.headers[ID_HEADER] = compute().zones.own_id()
    return answer


@blueprint.get("/zones/<zone_id>")
def show(zone_id: str) -> Body:
    """Show the registration of a child zone."""
    _may_manage()
    return {"zone": _registered(registry.get(compute(), _id(zone_id)))}


@blueprint.post("/zones")
def add() -> Body:
    """Create a child zone; it is not contacted."""
    _may_manage()
    values = ZONE.read(read_object())
    return {"zone": _registered(registry.add(audited(), values))}


@blueprint.put("/zones/<zone_id>")
def change(zone_id: str) -> Body:
    """Update the registration of a child zone."""
    _may_manage()
    values = CHANGED.read(read_object())
    return {"zone": _registered(registry.change(audited(), _id(zone_id), values))}


@blueprint.delete("/zones/<zone_id>")
def remove(zone_id: str) -> Body:
    """Delete a child zone from this one; refused while leases or builds need it, unless `force` is given."""
    _may_manage()
    number, force = _id(zone_id), validation.query_flag("force")
    registry.get(compute(), number)
    if not force:
        zone_removal.refuse_if_leased(climate(), number)
    registry.remove(audited(), number, force=force)
    return {}


def _may_manage() -> None:
    validation.may_administer()
    zone_chain.refuse_forwarded()


def _page() -> list[ChildZone]:
    _may_manage()
    offset, limit = _number("offset"), _number("limit")
    limit = limit if 0 < limit <= MOST else MOST
    return registry.listed(compute())[offset : offset + limit]


def _number(key: str) -> int:
    text = request.args.get(key, "0")
    number = whole_number(text)
    if number is None:
        raise InvalidInput(f"{key} must be a whole number from 0, not {text[:40]!r}")
    return number


def _id(text: str) -> int:
    number = whole_number(text)
    if number is None or number > LARGEST_ID:
        raise NotFound(f"Zone {text[:80]} could not be found.")
    return number


def _registered(zone: ChildZone) -> Body:
    return {
        "id": zone.id,
        "api_url": zone.api_url,
        "weight_offset": zone.weight_offset,
        "weight_scale": zone.weight_scale,
    }


def _view(zone: ChildZone) -> Body:
    state = {"name": zone.name, "is_active": zone.is_active, "capabilities": zone.capabilities}
    return _registered(zone) | state


def _polls(zone: ChildZone) -> Body:
    return {
        "attempts": zone.attempts,
        "last_seen": _moment(zone.last_seen),
        "last_error": LOOP if zone.loop_at else zone.last_error,
        "last_error_at": _moment(zone.loop_at or zone.last_error_at),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
