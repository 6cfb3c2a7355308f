"""Placement of servers on offers: of this zone for a parent, and of child zones for this zone.

An offer is valid for one server. The server is recorded with the offer, so that a repeated order returns it, and an
offer used for another server is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import ComputeError, Conflict, NoValidHost, ZoneUnavailable
from climate.compute.models.request import BootRequest
from climate.compute.models.server import Server
from climate.compute.projects import quota_check
from climate.compute.servers import create
from climate.compute.servers.create import Offered
from climate.compute.store.zones import child_zones, servers, used_offers
from climate.compute.zones import routing
from climate.compute.zones.builds import plan, request_spec
from climate.compute.zones.builds.blobs import BlobContent, InvalidBlob
from climate.compute.zones.builds.orders import (
    Outcome,
    Refused,
    ServerBuilt,
    ServerOrder,
    not_sent,
    outcome,
    request_for,
)
from climate.compute.zones.builds.plan import ChildItem, LocalItem
from climate.compute.zones.client_interface import ChildError, ChildRequest
from climate.compute.zones.models import ChildZone, Parts, ZoneChain
from climate.database.connections import reading

log = structlog.get_logger(__name__)

Make = Callable[[Offered], Server]
"""Function that creates the server of an offer here and returns it. Raises what `boot.place` raises."""


class _Used(Exception):
    """Raised if a concurrent request used the offer, or the server's number in its build."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Server of an order."""

    server_id: str
    zone_id: int | None
    """Child that it was forwarded to; None: it is in this zone."""


@dataclass(frozen=True, slots=True)
class ChildRoute:
    """Route from this zone to its children."""

    chain: ZoneChain
    parts: Parts = field(default_factory=dict)
    """Parts of the request's reservations in child zones."""


def place(compute: Compute, request: BootRequest, order: ServerOrder, way: ChildRoute, make: Make) -> str:
    """Return the id of the server of an order, created on the offered node or by the offering child.

    A repeated order returns its server. Raise InvalidBlob, NoValidHost if the offer is no longer valid, ZoneUnavailable
    if a child does not answer, and the errors of booting.
    """
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        if not order.build_id:
            item_id = compute.zones.blobs.open(compute.zones.own_id(), order.blob, now).item_id
            order = replace(order, build_id=f"{order.reservation_id}.{item_id}")
        result = used_offers.find(conn, request.project_id, order.build_id, order.launch_index)
    if result is not None and result.server_id is not None:
        return result.server_id
    # An order forwarded before its expiry is repeated until the child answers.
    opened = compute.zones.blobs.open(compute.zones.own_id(), order.blob, now, late=result is not None)
    if result is not None and result.item_id != opened.item_id:
        raise Conflict(f"Server {order.launch_index} of build {order.build_id} is being made on another offer")
    item = plan.read(opened.item)
    if isinstance(item, ChildItem):
        return _forwarded(compute, request, replace(order, blob=item.child_blob), (item, opened, way))
    return _create_server(compute, request, order, (item, opened, make))


def _create_server(
    compute: Compute, request: BootRequest, order: ServerOrder, what: tuple[LocalItem, BlobContent, Make]
) -> str:
    """Return the id of the server, created on the offered node."""
    item, opened, make = what

    def write(conn: Connection, made: Sequence[Server]) -> None:
        if not used_offers.use(conn, _row(request, order, opened) | {"server_id": made[0].id}):
            raise _Used

    destination = f"{item.hostname}:{item.nodename}"
    offered = Offered(order.reservation_id, (order.launch_index,), (order.name,), destination, write)
    try:
        return make(offered).id
    except _Used:
        return _of_first(compute, request, order)
    except NoValidHost as full:
        log.info("offer could not be used", build_id=order.build_id, reason=str(full))
        raise NoValidHost(create.OFFER_GONE, trail=full.trail) from None


def _of_first(compute: Compute, request: BootRequest, order: ServerOrder) -> str:
    """Return the server of a concurrent request for the same order. Raise InvalidBlob otherwise."""
    with reading(compute.engine) as conn:
        result = used_offers.find(conn, request.project_id, order.build_id, order.launch_index)
    if result is None or result.server_id is None:
        raise InvalidBlob("it was used for another server")
    return result.server_id


def _forwarded(
    compute: Compute, request: BootRequest, order: ServerOrder, what: tuple[ChildItem, BlobContent, ChildRoute]
) -> str:
    """Return the id of the server, created by the child of the offer."""
    item, opened, way = what
    with compute.engine.begin() as conn:
        zone = child_zones.get(conn, item.child_zone)
        if zone is None:
            raise InvalidBlob("the child zone is not registered any more")
        used_offers.lock(conn, request.project_id, order.build_id, order.launch_index)
        repeated = used_offers.find(conn, request.project_id, order.build_id, order.launch_index) is not None
        if not repeated:
            quota_check.allowed(conn, request.project_id, request.flavor, 1, 1)
            if not used_offers.use(conn, _row(request, order, opened)):
                raise InvalidBlob("it was used for another server")
        image = request_spec.image_name(conn, request.image_id)
        theirs = request_spec.in_child(request_spec.with_key(conn, request), way.parts, zone.id)
    (answer,) = send_all(compute, [(zone, request_for(order, theirs, image, way.chain))], repeated=repeated)
    if isinstance(answer, ServerBuilt):
        with compute.engine.begin() as conn:
            used_offers.settle(conn, opened.item_id, answer.server_id)
            servers.add(conn, owned(request, order, Placed(answer.server_id, zone.id)))
        return answer.server_id
    if isinstance(answer, Refused):
        with compute.engine.begin() as conn:
            used_offers.release(conn, opened.item_id)
        raise NoValidHost(f"{create.OFFER_GONE} {answer.reason}")
    raise ZoneUnavailable("The child zone that made the offer does not answer; repeat the request.")


def send_all(compute: Compute, requests: Sequence[tuple[ChildZone, ChildRequest]], *, repeated: bool) -> list[Outcome]:
    """Send orders to children in parallel, and return their outcomes; the children's passwords are encrypted.

    `repeated`: the orders may have been sent before, so an unsent order may still have been carried out.
    """
    opened: dict[int, ChildZone] = {}
    try:
        for zone, _ in requests:
            opened.setdefault(zone.id, replace(zone, password=compute.zones.unseal(zone.password)))
    except ComputeError as sealed_for_good:
        return [not_sent(str(sealed_for_good), repeated=repeated) for _ in requests]
    if compute.zones.client is None:
        return [not_sent("This zone does not talk to others", repeated=repeated) for _ in requests]
    answers = routing.send(compute, [(opened[zone.id], request) for zone, request in requests])
    for (zone, _), answer in zip(requests, answers, strict=True):
        if isinstance(answer, ChildError):
            log.warning("child zone did not accept an order", zone=zone.id, reason=str(answer))
    return [outcome(answer, repeated=repeated) for answer in answers]


def owned(request: BootRequest, order: ServerOrder, placed: Placed) -> Mapping[str, object]:
    """Return the row that assigns a server in a child to this project."""
    return {
        "server_id": placed.server_id,
        "zone_id": placed.zone_id,
        "project_id": request.project_id,
        "user_id": request.user_id,
        "build_id": order.reservation_id,
        "name": order.name,
        "vcpus": request.flavor.vcpus,
        "ram_mb": request.flavor.ram_mb,
    }


def _row(request: BootRequest, order: ServerOrder, opened: BlobContent) -> dict[str, object]:
    return {
        "item_id": opened.item_id,
        "project_id": request.project_id,
        "build_id": order.build_id,
        "launch_index": order.launch_index,
        "owner_project": order.project_id,
        "owner_user": order.user_id,
        "vcpus": request.flavor.vcpus,
        "ram_mb": request.flavor.ram_mb,
        "expires_at": opened.expires_at,
    }
