"""Servers placed in children: their rows are deleted when they are gone there, which releases quota."""

import time
from collections.abc import Sequence

import structlog

from climate.compute.context import Compute
from climate.compute.store.zones import servers as zone_servers
from climate.compute.zones import routing
from climate.compute.zones.client_interface import ROLE_HEADER, ChildAnswer, ChildError, ChildRequest
from climate.compute.zones.models import ChildZone
from climate.database.connections import reading

MOST_PAGES = 50
MOST_CHECKED = 100
"""Maximum number of servers of a child that are checked one by one after a poll."""

OWN = {ROLE_HEADER: "member"}
"""Role with which the account lists only its own project, which has all placed servers."""

log = structlog.get_logger(__name__)


def user_of(compute: Compute, server_id: str, project_id: str | None) -> str | None:
    """Return the user of a server that this zone placed in a child; None for others, and for other projects' servers.

    `project_id` None: any project.
    """
    if compute.zones.client is None:
        return None
    with reading(compute.engine) as conn:
        placed = zone_servers.get(conn, server_id)
    return placed.user_id if placed is not None and project_id in (None, placed.project_id) else None


def forget_gone(compute: Compute, zones: Sequence[ChildZone]) -> list[str]:
    """Delete rows of placed servers that these children no longer have; return their ids.

    A server that is missing in the account's list is looked up by id first, because the account may have changed.
    """
    with reading(compute.engine) as conn:
        known = zone_servers.listed(conn)
    there = {zone.id: [one.server_id for one in known if one.zone_id == zone.id] for zone in zones}
    concerned = [zone for zone in zones if there[zone.id]]
    listed = _listed(compute, concerned)
    missing = [
        (zone, server_id)
        for zone in concerned
        if zone.id in listed
        for server_id in [one for one in there[zone.id] if one not in listed[zone.id]][:MOST_CHECKED]
    ]
    gone = _gone(compute, missing)
    if gone:
        log.info("rows of deleted placed servers removed", servers=gone)
        with compute.engine.begin() as conn:
            zone_servers.forget(conn, gone)
    return gone


def _gone(compute: Compute, missing: Sequence[tuple[ChildZone, str]]) -> list[str]:
    """Return the ids of those servers that their zones do not know."""
    looks = [(zone, ChildRequest("GET", f"/servers/{server_id}")) for zone, server_id in missing]
    outcomes = routing.send(compute, looks) if looks else []
    return [
        server_id
        for (_, server_id), outcome in zip(missing, outcomes, strict=True)
        if isinstance(outcome, ChildAnswer) and outcome.status == 404
    ]


def _listed(compute: Compute, zones: Sequence[ChildZone]) -> dict[int, set[str]]:
    """Return the ids of the account's servers in each zone and below, without zones whose list is incomplete.

    All zones are asked in parallel for each page. After one period the rest is left to the next poll.
    """
    result: dict[int, set[str]] = {zone.id: set() for zone in zones}
    complete: dict[int, set[str]] = {}
    waiting = [(zone, {"recurse_zones": "true"}) for zone in zones]
    until = time.monotonic() + compute.zones.poll_seconds
    for number in range(MOST_PAGES):
        if not waiting or (number and time.monotonic() > until):
            break
        pages = [(zone, ChildRequest("GET", "/servers", query=query, headers=OWN)) for zone, query in waiting]
        following = []
        for (zone, query), outcome in zip(waiting, routing.send(compute, pages), strict=True):
            page = _page(outcome)
            if page is None:
                continue
            result[zone.id] |= set(page)
            if page and _has_more(outcome):
                following.append((zone, {**query, "marker": page[-1]}))
            else:
                complete[zone.id] = result[zone.id]
        waiting = following
    return complete


def _page(outcome: ChildAnswer | ChildError) -> list[str] | None:
    body: object = outcome.body if isinstance(outcome, ChildAnswer) and outcome.status == 200 else None
    servers = body.get("servers") if isinstance(body, dict) else None
    if not isinstance(servers, list):
        return None
    return [str(server["id"]) for server in servers if isinstance(server, dict) and "id" in server]


def _has_more(outcome: ChildAnswer | ChildError) -> bool:
    return isinstance(outcome, ChildAnswer) and bool(outcome.body.get("servers_links"))
