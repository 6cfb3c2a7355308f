"""Servers that were placed in children: forgotten when they are gone there, so that they count no longer."""

from collections.abc import Sequence
from typing import Any

import structlog

from climate.compute.context import Compute
from climate.compute.store import zone_servers
from climate.compute.store.zone_servers import PlacedServer
from climate.compute.zones import routing
from climate.compute.zones.client import ROLE_HEADER, ChildAnswer, ChildError, ChildRequest
from climate.compute.zones.models import ChildZone

MOST_PAGES = 50
MOST_CHECKED = 100
"""Servers of a child that are looked for one by one after a poll."""

OWN = {ROLE_HEADER: "member"}
"""As a member the account lists its own project only, in which all placed servers are."""

log = structlog.get_logger(__name__)


def forget_gone(compute: Compute, zones: Sequence[ChildZone]) -> list[str]:
    """Forget placed servers that these children do not have any more; return their ids.

    A server that is missing from the list of the account is looked for by its
    id before it is forgotten: the account may have changed.
    """
    with compute.engine.connect() as conn:
        known = zone_servers.listed(conn)
    gone: list[str] = []
    for zone in zones:
        there = [server for server in known if server.zone_id == zone.id]
        gone += _gone(compute, zone, there) if there else []
    if gone:
        log.info("placed servers are gone", servers=gone)
        with compute.engine.begin() as conn:
            zone_servers.forget(conn, gone)
    return gone


def _gone(compute: Compute, zone: ChildZone, placed: Sequence[PlacedServer]) -> list[str]:
    listed = _listed(compute, zone)
    if listed is None:
        return []
    missing = [server.server_id for server in placed if server.server_id not in listed][:MOST_CHECKED]
    looks = [(zone, ChildRequest("GET", f"/servers/{server_id}")) for server_id in missing]
    outcomes = routing.ask(compute, looks) if looks else []
    return [
        server_id
        for server_id, outcome in zip(missing, outcomes, strict=True)
        if isinstance(outcome, ChildAnswer) and outcome.status == 404
    ]


def _listed(compute: Compute, zone: ChildZone) -> set[str] | None:
    """The ids of all servers of the account and below; None when the list is not complete."""
    found: set[str] = set()
    query = {"recurse_zones": "true"}
    for _ in range(MOST_PAGES):
        (outcome,) = routing.ask(compute, [(zone, ChildRequest("GET", "/servers", query=query, headers=OWN))])
        page = _page(outcome)
        if page is None:
            return None
        found |= set(page)
        if not _has_more(outcome) or not page:
            return found
        query = {**query, "marker": page[-1]}
    return None


def _page(outcome: ChildAnswer | ChildError) -> list[str] | None:
    body: Any = outcome.body if isinstance(outcome, ChildAnswer) and outcome.status == 200 else None
    servers = body.get("servers") if isinstance(body, dict) else None
    if not isinstance(servers, list):
        return None
    return [str(server["id"]) for server in servers if isinstance(server, dict) and "id" in server]


def _has_more(outcome: ChildAnswer | ChildError) -> bool:
    return isinstance(outcome, ChildAnswer) and bool(outcome.body.get("servers_links"))
