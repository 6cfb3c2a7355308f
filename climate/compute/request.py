"""What is asked for when servers are booted, read once at the edge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from climate.compute.errors import BadRequest
from climate.compute.flavor import Flavor
from climate.compute.server import Server


@dataclass(frozen=True, slots=True)
class Placement:
    """What the scheduler needs to know of a request.  Sizes: MB."""

    project_id: str
    vcpus: int
    ram_mb: int
    disk_mb: int
    pools: tuple[str, ...] = ()
    """Lent pools that were named by the hint `reservation`."""
    zone: str | None = None
    force_host: str | None = None
    force_node: str | None = None
    tried: tuple[int, ...] = ()
    """Nodes that must not be tried again."""

    @property
    def forced(self) -> bool:
        return self.force_host is not None or self.force_node is not None


@dataclass(frozen=True, slots=True)
class BootRequest:
    """A request for servers, complete and checked."""

    project_id: str
    user_id: str
    name: str
    flavor: Flavor
    image_id: str | None
    networks: tuple[str, ...] | None = None
    """Ids of networks; None: the cloud's only one; empty: none."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, Any] = field(default_factory=dict)
    zone: str | None = None
    """`zone`, or for administrators `zone:host`, `zone:host:node`, `zone::node`."""
    key_name: str | None = None
    user_data: str | None = None
    count: int = 1
    least: int = 1
    """How many are enough when not all of `count` are possible."""
    admin: bool = False
    request_id: str = ""
    """Of the request over HTTP, for the list of what was asked of a server."""


def placement(request: BootRequest) -> Placement:
    """The part of a request that decides where its servers may go."""
    place = _place(request)
    if place.forced and not request.admin:
        raise BadRequest("Only administrators may force a host.")
    return place


def replacement(server: Server, tried: tuple[int, ...]) -> Placement:
    """Where a server that could not be made on the nodes in `tried` may go instead."""
    return _place(server, tried)


def _place(asked: BootRequest | Server, tried: tuple[int, ...] = ()) -> Placement:
    zone, host, node = read_zone(asked.zone)
    return Placement(
        project_id=asked.project_id,
        vcpus=asked.flavor.vcpus,
        ram_mb=asked.flavor.ram_mb,
        disk_mb=asked.flavor.disk_mb,
        pools=pools_of(asked.hints),
        zone=zone,
        force_host=host,
        force_node=node,
        tried=tried,
    )


def pools_of(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """The pools that the hint `reservation` names: a text or a list of texts."""
    named = hints.get("reservation")
    if named is None or named == []:
        return ()
    values = named if isinstance(named, list) else [named]
    if not all(isinstance(value, str) for value in values):
        raise BadRequest("The hint 'reservation' must be the id of a reservation.")
    return tuple(values)


def read_zone(text: str | None) -> tuple[str | None, str | None, str | None]:
    """(zone, host, node) of `zone[:host[:node]]`; empty parts are None."""
    parts = (text or "").split(":")
    if len(parts) > 3:
        raise BadRequest(f"Unable to parse availability_zone {text!r}")
    zone, host, node = (*parts, "", "")[:3]
    return zone or None, host or None, node or None
