"""Lists of servers with those of child zones, which are asked in parallel; owners are those known here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from climate.compute.context import Compute
from climate.compute.store.zones import servers as zone_servers
from climate.compute.store.zones.servers import PlacedServer
from climate.compute.zones import answer_rewriting, routing
from climate.compute.zones.client_interface import ChildError, ChildRequest
from climate.compute.zones.models import ChildZone
from climate.compute.zones.routing import Outcome
from climate.database.connections import reading

PRECOOKED = "_is_precooked"
"""Marker of a server described by another zone."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """Filter of the listed servers of child zones."""

    project_id: str | None = None
    """None: all projects, including servers without a row in this zone."""
    build_id: str | None = None


@dataclass(slots=True)
class ChildServers:
    """Servers of children, and the children that did not answer."""

    servers: list[Entry] = field(default_factory=list)
    silent: list[ChildZone] = field(default_factory=list)


def gather(compute: Compute, request: ChildRequest, filters: ServerFilter) -> ChildServers:
    """Return the servers of child zones.

    For a project, only servers that this zone placed are listed, because a child knows only its parent's account. A
    placed server whose zone does not answer has the status UNKNOWN.
    """
    if compute.zones.client is None or not compute.zones.routing:
        return ChildServers()
    with reading(compute.engine) as conn:
        placed = zone_servers.listed(conn, project_id=filters.project_id, build_id=filters.build_id)
    if filters.project_id is not None and not placed:
        return ChildServers()
    there = routing.children(compute)
    asked = _concerned(there.asked, placed, filters)
    result = ChildServers(silent=_concerned(there.silent, placed, filters))
    for zone, outcome in zip(asked, routing.send(compute, [(zone, request) for zone in asked]), strict=True):
        entries = _entries(outcome)
        if entries is None:
            result.silent.append(zone)
        else:
            result.servers += _own(entries, placed, zone, filters)
    result.servers += _unknown(placed, result.silent)
    result.servers = list({entry["id"]: entry for entry in reversed(result.servers)}.values())[::-1]
    return result


def _concerned(zones: Iterable[ChildZone], placed: Iterable[PlacedServer], filters: ServerFilter) -> list[ChildZone]:
    """Return the zones that may have servers of the project."""
    concerned = {server.zone_id for server in placed}
    return [zone for zone in zones if filters.project_id is None or zone.id in concerned]


def _entries(outcome: Outcome) -> list[Entry] | None:
    """Return the servers in the answer of a child; None if it did not answer with a list of them."""
    if isinstance(outcome, ChildError) or outcome.status != 200:
        return None
    servers = outcome.body.get("servers") if isinstance(outcome.body, Mapping) else None
    if not isinstance(servers, list):
        return None
    return [entry for entry in servers if isinstance(entry, dict) and _has_id(entry)]


def _has_id(entry: Entry) -> bool:
    return isinstance(entry.get("id"), str)


def _own(
    entries: Iterable[Entry], placed: Sequence[PlacedServer], zone: ChildZone, filters: ServerFilter
) -> list[Entry]:
    owners = {server.server_id: server for server in placed if server.zone_id == zone.id}
    everybody = filters.project_id is None
    return [
        {**answer_rewriting.server(entry, owners.get(entry["id"])), PRECOOKED: True}
        for entry in entries
        if everybody or entry["id"] in owners
    ]


def _unknown(placed: Iterable[PlacedServer], silent: Iterable[ChildZone]) -> list[Entry]:
    away = {zone.id for zone in silent}
    return [
        {
            "id": one.server_id,
            "name": one.name,
            "status": "UNKNOWN",
            "tenant_id": one.project_id,
            "user_id": one.user_id,
            PRECOOKED: True,
        }
        for one in placed
        if one.zone_id in away
    ]
