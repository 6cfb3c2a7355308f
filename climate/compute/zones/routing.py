"""Forwarding of requests about unknown servers to the child zone that has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from climate.compute.context import Compute
from climate.compute.errors import ComputeError, NotFound, ZoneUnavailable
from climate.compute.store.zones import child_zones, routes, servers
from climate.compute.store.zones.servers import PlacedServer
from climate.compute.zones import answer_rewriting, loops, registry
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildRefused, ChildRequest, ChildTimeout
from climate.compute.zones.models import FROM_USER, MOST_HOPS, SHARE, ChildZone
from climate.database.connections import reading

Outcome = ChildAnswer | ChildError

COSTLY = (ChildTimeout, ChildRefused)
"""Failures after which a child is skipped, because each request would lose time: timeout or sign-in."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Children:
    """Children to ask, and children skipped because they do not answer."""

    asked: Sequence[ChildZone] = ()
    silent: Sequence[ChildZone] = ()


def forward(compute: Compute, server_id: str, request: ChildRequest, project_id: str | None) -> ChildAnswer:
    """Forward a request about a server to its zone, and return the answer with the local owner.

    `project_id`: owner of the servers that may be reached; None: all. Raise NotFound, and ZoneUnavailable if the zone
    of the server does not answer.
    """
    if compute.zones.client is None or not compute.zones.routing:
        raise _nobody(server_id)
    with reading(compute.engine) as conn:
        route = routes.find(conn, server_id, search=project_id is None)
    if route.is_here or not route.zones:
        compute.zones.forwarded.forget(server_id)
        raise _nobody(server_id)
    there = _opened(compute, route.zones, route.now)
    if route.placed is None:
        return _search(compute, there, server_id, request)
    if project_id is not None and route.placed.project_id != project_id:
        raise _nobody(server_id)
    return _send_to_owner(compute, there, route.placed, request)


def forward_known(
    compute: Compute, server_id: str, request: Callable[[], ChildRequest], project_id: str | None
) -> ChildAnswer | None:
    """Forward a request if a child answered for the server recently; return None otherwise.

    Raise ZoneUnavailable as `forward` does.
    """
    if compute.zones.forwarded.zone_of(server_id) is None:
        return None
    try:
        return forward(compute, server_id, request(), project_id)
    except NotFound:
        return None


def children(compute: Compute) -> Children:
    """Return the current children with decrypted passwords."""
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        known = child_zones.listed(conn)
    return _opened(compute, known, now)


def _opened(compute: Compute, known: Sequence[ChildZone], now: datetime) -> Children:
    asked: list[ChildZone] = []
    silent: list[ChildZone] = []
    for zone in known:
        try:
            (asked if zone.is_asked(now) else silent).append(registry.opened(compute, zone))
        except ComputeError:  # polls log the missing key
            silent.append(zone)
    return Children(asked, silent)


def send(compute: Compute, requests: Sequence[tuple[ChildZone, ChildRequest]]) -> list[Outcome]:
    """Send requests to children; record those to skip for a while, and those that lead back to this zone."""
    assert compute.zones.client is not None
    outcomes = compute.zones.client.send_all(requests)
    zones = [zone for zone, _ in requests]
    late = [
        zone.id
        for (zone, request), one in zip(requests, outcomes, strict=True)
        if isinstance(one, COSTLY) and not _was_hurried(compute, request)
    ]
    if late:
        log.warning("child zones skipped until their next poll", zones=late)
        with compute.engine.begin() as conn:
            until = compute.now(conn) + timedelta(seconds=compute.zones.poll_seconds)
            child_zones.skip(conn, late, until)
    loops.note_outcomes(compute, zones, outcomes)
    return outcomes


def _send_to_owner(compute: Compute, there: Children, placed: PlacedServer, request: ChildRequest) -> ChildAnswer:
    if not there.asked:
        raise _silent(placed.server_id)
    zone = there.asked[0]
    (outcome,) = send(compute, [(zone, request)])
    if isinstance(outcome, ChildError):
        raise _silent(placed.server_id)
    if outcome.status != 404:
        compute.zones.forwarded.note(placed.server_id, zone.id)
    elif request.path == f"/servers/{placed.server_id}":
        compute.zones.forwarded.forget(placed.server_id)
        with compute.engine.begin() as conn:
            servers.forget(conn, [placed.server_id])
    return _cooked(outcome, placed)


def _cooked(answer: ChildAnswer, owner: PlacedServer | None = None) -> ChildAnswer:
    if answer.status == 403:
        return replace(answer, body=answer_rewriting.FORBIDDEN)
    return replace(answer, body=answer_rewriting.cooked(answer.body, owner))


def _search(compute: Compute, there: Children, server_id: str, request: ChildRequest) -> ChildAnswer:
    """Ask the child that had the server last, or else all, and send the request to the one that has it."""
    known = compute.zones.forwarded.zone_of(server_id)
    last = next((zone for zone in there.asked if zone.id == known), None)
    if last is None:
        return _search_all(compute, there, server_id, request)
    (outcome,) = send(compute, [(last, request)])
    if not isinstance(outcome, ChildError) and _is_about(outcome, server_id, request):
        return _cooked(outcome)
    compute.zones.forwarded.forget(server_id)
    if not isinstance(outcome, ChildError):
        return _search_all(compute, there, server_id, request)
    if request.method != "GET":  # the child may have carried it out
        raise _silent(server_id)
    others = [zone for zone in there.asked if zone is not last]
    return _search_all(compute, Children(others, [*there.silent, last]), server_id, request)


def _search_all(compute: Compute, there: Children, server_id: str, request: ChildRequest) -> ChildAnswer:
    """Search all children for the server, then send the request to the first that has it."""
    look = replace(request, method="GET", path=f"/servers/{server_id}", body=None, query=None)
    outcomes = send(compute, [(zone, look) for zone in there.asked])
    silent = list(there.silent)
    for zone, outcome in zip(there.asked, outcomes, strict=True):
        if isinstance(outcome, ChildError):
            silent.append(zone)
        elif _is_of(outcome, server_id):
            compute.zones.forwarded.note(server_id, zone.id)
            if _is_look(request, server_id):
                return _cooked(outcome)
            (answer,) = send(compute, [(zone, request)])
            if isinstance(answer, ChildError):
                raise _silent(server_id)
            return _cooked(answer)
    raise _nobody(server_id, silent if request.chain == FROM_USER else ())


def _is_look(request: ChildRequest, server_id: str) -> bool:
    return (request.method, request.path) == ("GET", f"/servers/{server_id}")


def _is_about(answer: ChildAnswer, server_id: str, request: ChildRequest) -> bool:
    """Return whether an answer is about the server; a 404 may be about anything."""
    return _is_of(answer, server_id) if _is_look(request, server_id) else answer.status != 404


def _was_hurried(compute: Compute, request: ChildRequest) -> bool:
    """Return whether a parent left less time than the longest chain of zones needs, so that a healthy child may be
    late.
    """
    whole = compute.zones.timeout_seconds
    return request.chain.limit(whole) < whole * SHARE**MOST_HOPS


def _is_of(answer: ChildAnswer, server_id: str) -> bool:
    """Return whether a child's answer shows this server."""
    server = answer.body.get("server") if answer.status == 200 and isinstance(answer.body, Mapping) else None
    return isinstance(server, Mapping) and server.get("id", server_id) == server_id


def _nobody(server_id: str, silent: Sequence[ChildZone] = ()) -> NotFound:
    where = f" Child zones that do not answer: {', '.join(str(zone.id) for zone in silent)}." if silent else ""
    return NotFound(f"Instance {server_id} could not be found.{where}")


def _silent(server_id: str) -> ZoneUnavailable:
    return ZoneUnavailable(f"The zone of instance {server_id} does not answer now")
