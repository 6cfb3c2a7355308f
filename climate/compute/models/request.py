"""Requests for servers, parsed once at the edge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import ERROR, MANUAL, Server
from climate.compute.placement.numa_and_pci_requests import Demand, demand_of
from climate.compute.placement.server_owners import Occupants


@dataclass(frozen=True, slots=True)
class Group:
    """The server group of a request: its policy, and the nodes of its servers."""

    id: str
    policy: str
    nodes: Mapping[int, int] = field(default_factory=dict)
    """Node -> number of the group's servers there."""
    most: int = 1
    """Maximum number of its servers on a node under anti-affinity."""

    def joined_by(self, node_id: int) -> "Group":
        """Return the group with one more server on that node."""
        return replace(self, nodes={**self.nodes, node_id: self.nodes.get(node_id, 0) + 1})


@dataclass(frozen=True, slots=True)
class Slots:
    """The free capacity of a reservation on nodes that it shares."""

    pool: str
    """Id of the reservation."""
    most: Mapping[int, float]
    """Node -> number of servers, of any size, on it when its slots are used up."""
    usage: str
    """Usage of the slots, as text for the requester."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The part of a request that the scheduler needs. Sizes: MB."""

    project_id: str
    vcpus: int
    ram_mb: int
    disk_mb: int
    """Root, ephemeral and swap together."""
    pools: tuple[str, ...] = ()
    """Lent pools that were named by the hint `reservation`."""
    zone: str | None = None
    force_hosts: tuple[str, ...] = ()
    """Service hosts or nodes that an administrator forces; with `force_nodes` both must match."""
    force_nodes: tuple[str, ...] = ()
    destination: str | None = None
    """`host`, `host:node` or `:node`: the only candidates, checked by all filters."""
    ignore_hosts: tuple[str, ...] = ()
    """Service hosts that must not be used."""
    tried: tuple[int, ...] = ()
    """Nodes that must not be tried again."""
    flavor: Flavor | None = None
    image_id: str | None = None
    image: Mapping[str, object] = field(default_factory=dict)
    """The properties of the image."""
    hints: Mapping[str, object] = field(default_factory=dict)
    build_id: str = ""
    server_ids: tuple[str, ...] = ()
    """For the log; one per server if they are known already."""
    group: Group | None = None
    same_host: frozenset[int] | None = None
    """Nodes of the servers that the hint `same_host` names; None: no such hint."""
    different_host: frozenset[int] | None = None
    other_flavors: frozenset[int] = frozenset()
    """Nodes with servers of another flavor; read only if a filter needs it."""
    slots: Slots | None = None
    """Capacity for servers of a reservation's flavor; None: no restriction."""
    host_filter: str | None = None
    """The host filter of the distributed scheduler that this request names; None: the configured one."""
    user_id: str = ""
    occupants: Occupants | None = None
    """Owners of the servers on the nodes; read only if a rule declares that it needs them."""

    demands: Mapping[int, tuple[Demand, ...]] | None = None
    """Node id -> demands of servers there for NUMA cells and PCI devices, oldest first.

    Read only if this request makes demands and a filter counts them.
    """

    trust: Mapping[str, str] = field(default_factory=dict)
    """Service host -> its trust level by an attestation service; read only if the flavor requires one."""

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
    """A complete and validated request for servers."""

    project_id: str
    user_id: str
    name: str
    flavor: Flavor
    image_id: str | None
    networks: tuple[str, ...] | None = None
    """Ids of networks; None: the cloud's only one; empty: none."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Network -> the fixed address that the only server requests there; in other networks it gets any."""
    ports: tuple[tuple[int, str], ...] = ()
    """Ports of the only server, each with its place among the interfaces; those in `networks` have the other places."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, object] = field(default_factory=dict)
    zone: str | None = None
    """`zone`, or for administrators `zone:host`, `zone:host:node`, `zone::node`."""
    destination: str | None = None
    """`host`, `host:node` or `:node`: the only candidates, checked by all filters. For administrators."""
    key_name: str | None = None
    public_key: str | None = None
    """The key of `key_name` as a parent zone or the top cell sent it; empty: no key. None: the user's key pair here."""
    user_data: str | None = None
    """The user data of the servers, in Base64."""
    config_drive: bool = False
    """Attach a config drive with the metadata, with or without user data."""
    disk_config: str = MANUAL
    description: str | None = None
    access: tuple[str | None, str | None] = (None, None)
    """The access addresses that the owner declares: one of IPv4, one of IPv6."""
    tags: tuple[str, ...] = ()
    security_groups: tuple[str, ...] | None = None
    """Ids of security groups; None: the group `default` of the project."""
    count: int = 1
    least: int = 1
    """Minimum number of servers if not all of `count` are possible."""
    admin: bool = False
    request_id: str = ""
    """The id of the HTTP request, for the list of actions of a server."""
    whole: int = 0
    """Number of servers of the whole request if parts of it are in other cells; 0: these are all."""
    first: int = 0
    """Index of the first of them in that request, from 0."""


def drafts(request: BootRequest, build_id: str, ids: Sequence[str], now: datetime) -> list[Server]:
    """Return rows for servers of a request that are on no node yet, in ERROR until they are."""
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
        tags=request.tags,
        security_groups=request.security_groups,
        config_drive=request.config_drive or request.user_data is not None,
        disk_config=request.disk_config,
    )
    if len(ids) == 1 and request.whole <= 1:
        return [first]
    return [
        replace(first, id=server_id, name=f"{request.name}-{index + 1}", launch_index=index)
        for index, server_id in enumerate(ids, request.first)
    ]


def zoned(request: BootRequest, zone: str | None) -> BootRequest:
    """Return the request with this availability zone if it names none; a reservation determines its own hosts."""
    named = request.zone or request.destination or pools_of(request.hints) or request.flavor.reservation
    return request if zone is None or named else replace(request, zone=zone)


def spec_of(request: BootRequest) -> Spec:
    """Return the part of a request that decides the placement of its servers."""
    spec = _spec(request)
    if (spec.forced or spec.destination) and not request.admin:
        raise BadRequest("Only administrators may force a host.")
    return spec


def replacement(server: Server, tried: tuple[int, ...]) -> Spec:
    """Return the spec for a server that failed on the nodes in `tried`."""
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


def _host_filter(hints: Mapping[str, object]) -> str | None:
    """Return the value of the hint `host_filter`; the scheduler checks that the filter exists."""
    name = hints.get("host_filter")
    if name is not None and not isinstance(name, str):
        raise BadRequest("The hint 'host_filter' must be the name of a host filter.")
    return name


def read_destination(text: str) -> tuple[str | None, str | None]:
    """Return (host, node) of a destination; an empty part is None."""
    host, _, node = text.partition(":")
    return host or None, node or None


def pools_of(hints: Mapping[str, object]) -> tuple[str, ...]:
    """Return the pools that the hint `reservation` names, a string or a list of strings."""
    named = hints.get("reservation")
    if named is None or named == []:
        return ()
    values = named if isinstance(named, list) else [named]
    if not all(isinstance(value, str) for value in values):
        raise BadRequest("The hint 'reservation' must be the id of a reservation.")
    return tuple(values)


def read_zone(text: str | None) -> tuple[str | None, str | None, str | None]:
    """Return (zone, host, node) of `zone[:host[:node]]`; empty parts are None."""
    parts = (text or "").split(":")
    if len(parts) > 3:
        raise BadRequest(f"Unable to parse availability_zone {text!r}")
    zone, host, node = (*parts, "", "")[:3]
    return zone or None, host or None, node or None
