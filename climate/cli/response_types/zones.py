"""Child zones, builds over zones, and cells."""

from typing import NotRequired, TypedDict


class ChildZone(TypedDict):
    """A child zone with the results of the last polls."""

    id: int
    name: str | None
    api_url: str
    is_active: bool
    attempts: int
    last_seen: str | None
    last_error: str | None


class BuiltServer(TypedDict):
    """A server of a build; without a zone it is in this one."""

    id: str
    zone: str | None


class ZoneBuild(TypedDict):
    """A build over zones."""

    reservation_id: str
    state: str
    requested: int
    placed: int
    unknown: int
    fault: str | None
    servers: list[BuiltServer]


class FreeMemory(TypedDict, total=False):
    """The free memory of a cell in MB."""

    total_mb: int


class Capacities(TypedDict, total=False):
    """The capacities of a cell with those below it."""

    ram_free: FreeMemory
    disk_free: dict[str, object]


class ListedCell(TypedDict):
    """A cell in a tree; the age of its last message is in seconds."""

    name: str
    state: NotRequired[str]
    age: NotRequired[float | None]
    capacities: NotRequired[Capacities]
    children: NotRequired["list[ListedCell]"]


class WaitingMessages(TypedDict):
    """The number of messages that wait for a neighbour, and the age of the oldest in seconds."""

    waiting: int
    oldest_age: float


class Neighbour(ListedCell):
    """A neighbour of this cell."""

    type: str
    username: str | None
    rpc_host: str | None
    rpc_port: int | None
    last_error: str | None
    messages: WaitingMessages
