"""Servers, their moves, and what they are made of."""

from typing import NotRequired, TypedDict


class Named(TypedDict):
    """A flavor, an image or a network; each sort has further keys."""

    id: str
    name: str


class Flavor(Named):
    """A flavor; the memory is in MB, and the disk in GB."""

    vcpus: int
    ram: int
    disk: int


class Address(TypedDict):
    """An address of a server."""

    addr: str
    version: int


class Fault(TypedDict):
    """The error of a server."""

    code: int
    message: str


_Attributes = TypedDict(
    "_Attributes",
    {
        "OS-EXT-STS:task_state": NotRequired[str | None],
        "OS-EXT-SRV-ATTR:hypervisor_hostname": NotRequired[str | None],
        "OS-EXT-SRV-ATTR:host": NotRequired[str | None],
    },
)


class Server(_Attributes):
    """A server; it has a fault in the status ERROR."""

    id: str
    name: str
    status: str
    addresses: dict[str, list[Address]]
    metadata: dict[str, str]
    fault: NotRequired[Fault]


class NewServer(TypedDict):
    """A server that was requested."""

    id: str


class Booted(TypedDict, total=False):
    """The answer to a boot: the server, or the id that several servers share."""

    server: NewServer
    reservation_id: str


class ActionAnswer(TypedDict, total=False):
    """The answer to an action on a server; most have no body."""

    image_id: str
    output: str


class ServerAction(TypedDict):
    """An action on a server, and its result."""

    action: str
    start_time: str
    message: str | None
    user_id: str | None
    request_id: str


class Migration(TypedDict):
    """A migration of a server."""

    id: int
    instance_uuid: str
    migration_type: str
    status: str
    source_node: str | None
    dest_node: str | None
    created_at: str


class PlannedMove(TypedDict):
    """The move of a server off its host, or the reason why there is none."""

    server: Named
    action: str | None
    source_node: str
    dest_node: str | None
    reason: str | None


class ComputeService(TypedDict):
    """A compute service."""

    id: str
    binary: str
    host: str
    zone: str
    status: str
    state: str
    disabled_reason: str | None
    forced_down: bool
    updated_at: str | None


class NodeService(TypedDict):
    """The compute service of a node."""

    id: str
    host: str


_NodeMaintenance = TypedDict("_NodeMaintenance", {"climate:maintenance": NotRequired[str | None]})


class Node(_NodeMaintenance):
    """A node of the cloud with its usage."""

    id: str
    hypervisor_hostname: str
    service: NodeService
    vcpus: int
    memory_mb: int
    running_vms: int
