"""What is asked for when servers are booted, read once at the edge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import ERROR, Server
from climate.compute.placement.flavor_demands import Demand, demand_of
from climate.compute.placement.occupants import Occupants


@dataclass(frozen=True, slots=True)
class Group:
    """The server group of a request: its policy, and the nodes that its servers are on."""

    id: str
    policy: str
    nodes: Mapping[int, int] = field(default_factory=dict)
    """Node -> how many of its servers are there."""
    most: int = 1
    """Of its servers that a node takes under anti-affinity."""

    def joined_by(self, node_id: int) -> "Group":
        """The group with one more of its servers on that node."""
        return replace(self, nodes={**self.nodes, node_id: self.nodes.get(node_id, 0) + 1})


@dataclass(frozen=True, slots=True)
class Slots:
    """The room of a reservation on nodes that it shares, as far as it is free."""

    pool: str
    """Id of the reservation."""
    most: Mapping[int, float]
    """Node -> how many servers, of whatever size, are on it when its slots are used up."""
    told: str
    """How it stands with them, for whoever asks."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What the scheduler needs to know of a request.  Sizes: MB."""

    project_id: str
    vcpus: int
    ram_mb: int
    disk_mb: int
    """Root, ephemeral and swap together."""
    pools: tuple[str, ...] = ()
    """Lent pools that were named by the hint `reservation`."""
    zone: str | None = None
    force_hosts: tuple[str, ...] = ()
    """Service hosts or nodes that an administrator wants; with `force_nodes` both must fit."""
    force_nodes: tuple[str, ...] = ()
    destination: str | None = None
    """`host`, `host:node` or `:node`: nothing else is looked at, but all filters are asked."""
    ignore_hosts: tuple[str, ...] = ()
    """Service hosts that must not be used."""
    tried: tuple[int, ...] = ()
    """Nodes that must not be tried again."""
    flavor: Flavor | None = None
    image_id: str | None = None
    image: Mapping[str, Any] = field(default_factory=dict)
    """The properties of the image."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    build_id: str = ""
    server_ids: tuple[str, ...] = ()
    """For the log; one per server where they are known already."""
    group: Group | None = None
    same_host: frozenset[int] | None = None
    """Nodes of the servers that the hint `same_host` names; None: not asked for."""
    different_host: frozenset[int] | None = None
    other_flavors: frozenset[int] = frozenset()
    """Nodes with servers of another flavor; looked up only where a filter wants it."""
    slots: Slots | None = None
    """Where there is room for servers of a reservation's flavor; None: they may go wherever others may."""
    host_filter: str | None = None
    """The host filter of the distributed scheduler that this request names (cloud.md B.10); None: the configured."""
    user_id: str = ""
    occupants: Occupants | None = None
    """Whose servers are on the nodes; looked up only when a rule declares that it sees them."""

    demands: Mapping[int, tuple[Demand, ...]] | None = None
    """Node id -> what servers there were promised of its NUMA cells and PCI devices, oldest first; looked up only when
    this request asks for some and a filter counts them."""

    trust: Mapping[str, str] = field(default_factory=dict)
    """Service host -> its level, as an attestation service says; looked up only when the flavor asks for one."""

    def joined_by(self, node_id: int) -> "Spec":
        """Return the spec with one more of its servers on that node."""
        if self.group is None and self.occupants is None and self.demands is None:
            return self
        demands = self.demands
        if demands is not None and self.flavor is not None:
            own = demand_of(self.flavor.extra_specs, self.flavor.vcpus, self.flavor.ram_mb)
            demands = {**demands, node_id: (*demands.get(node_id, ()), own)}
        group = self.group and self.group.joined_by(node_id)
        occupants = self.occupants and self.occupants.joined_by(node_id, (self.project_id, self.user_id))
        return replace(self, group=group, occupants=occupants, demands=demands)

    @property
    def forced(self) -> bool:
        return bool(self.force_hosts or self.force_nodes)


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
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Network -> the very fixed address that the only server is to have there; in other networks it gets any."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, Any] = field(default_factory=dict)
    zone: str | None = None
    """`zone`, or for administrators `zone:host`, `zone:host:node`, `zone::node`."""
    destination: str | None = None
    """`host`, `host:node` or `:node`: where else no server goes, all filters being asked.  For administrators."""
    key_name: str | None = None
    user_data: str | None = None
    """What the servers are given to begin with, in Base64."""
    config_drive: bool = False
    """Tell them their metadata by a drive, with user data or without."""
    description: str | None = None
    access: tuple[str | None, str | None] = (None, None)
    """The addresses at which its owner says that a server is reached: one of IPv4, one of IPv6."""
    count: int = 1
    least: int = 1
    """How many are enough when not all of `count` are possible."""
    admin: bool = False
    request_id: str = ""
    """Of the request over HTTP, for the list of what was asked of a server."""
    whole: int = 0
    """Servers of the request that these are a part of, the others being in other cells; 0: these are all."""
    first: int = 0
    """Place of the first of them in that request, from 0."""


def drafts(request: BootRequest, build_id: str, ids: Sequence[str], now: datetime) -> list[Server]:
    """Rows for servers of a request that are on no node yet, in ERROR until they are."""
    first = Server(
        id=ids[0],
        name=request.name,
        project_id=request.project_id,
        user_id=request.user_id,
        status=ERROR,
        task=None,
        flavor=request.flavor,
        image_id=request.image_id,
        metadata=request.metadata,
        hints=request.hints,
        zone=request.zone,
        build_id=build_id,
        launch_index=request.first,
        created_at=now,
        updated_at=now,
        key_name=request.key_name,
        description=request.description,
        destination=request.destination,
        access=request.access,
        config_drive=request.config_drive or request.user_data is not None,
    )
    if len(ids) == 1 and request.whole <= 1:
        return [first]
    return [
        replace(first, id=server_id, name=f"{request.name}-{place + 1}", launch_index=place)
        for place, server_id in enumerate(ids, request.first)
    ]


def zoned(request: BootRequest, zone: str | None) -> BootRequest:
    """Return the request with this availability zone if it names none; a reservation has places of its own."""
    named = request.zone or request.destination or pools_of(request.hints) or request.flavor.reservation
    return request if zone is None or named else replace(request, zone=zone)


def spec_of(request: BootRequest) -> Spec:
    """The part of a request that decides where its servers may go."""
    spec = _spec(request)
    if (spec.forced or spec.destination) and not request.admin:
        raise BadRequest("Only administrators may force a host.")
    return spec


def replacement(server: Server, tried: tuple[int, ...]) -> Spec:
    """Where a server that could not be made on the nodes in `tried` may go instead."""
    return _spec(server, tried)


def _spec(asked: BootRequest | Server, tried: tuple[int, ...] = ()) -> Spec:
    zone, host, node = read_zone(asked.zone)
    return Spec(
        project_id=asked.project_id,
        vcpus=asked.flavor.vcpus,
        ram_mb=asked.flavor.ram_mb,
        disk_mb=asked.flavor.disk_mb,
        pools=pools_of(asked.hints),
        zone=zone,
        force_hosts=(host,) if host else (),
        force_nodes=(node,) if node else (),
        destination=asked.destination,
        tried=tried,
        flavor=asked.flavor,
        image_id=asked.image_id,
        hints=asked.hints,
        host_filter=_host_filter(asked.hints),
        user_id=asked.user_id,
    )


def _host_filter(hints: Mapping[str, Any]) -> str | None:
    """What the hint `host_filter` names; whether there is such a filter is the scheduler's to know."""
    name = hints.get("host_filter")
    if name is not None and not isinstance(name, str):
        raise BadRequest("The hint 'host_filter' must be the name of a host filter.")
    return name


def read_destination(text: str) -> tuple[str | None, str | None]:
    """(host, node) of a destination; an empty part is None."""
    host, _, node = text.partition(":")
    return host or None, node or None


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
