"""Host pools, their hosts, and the plan of their size."""

from typing import TypedDict

from climate.cli.response_types.hosts import Place


class Pool(TypedDict):
    """A pool with the number of its hosts."""

    name: str
    hosts: int
    unregistered: int
    reservable: int
    promised_now: int
    promised_next_day: int
    drifted: int
    terms: dict[str, object] | None


class Promise(TypedDict):
    """An allocation of a host: a lease, a hold, a maintenance window or cleaning; without slots the whole host."""

    kind: str
    state: str
    start: str
    end: str | None
    slots: int
    lease_id: str | None
    lease_name: str | None
    project_id: str | None
    reservation_id: str | None
    start_date: str | None
    end_date: str | None
    maintenance_id: str | None
    reason: str | None


_FormerPool = TypedDict("_FormerPool", {"from": str})


class MovedHost(_FormerPool):
    """A host after a move: its former pool, whether it moved, and the allocations of leases that were lost."""

    host: Place
    moved: bool
    leases: list[Promise]


class ServerThere(TypedDict):
    """A server on a host."""

    id: str
    name: str
    project_id: str
    status: str


class ResidentParts(TypedDict):
    """The servers of a host; null if the cloud does not answer, or nobody asked for them."""

    server_count: int | None
    servers: list[ServerThere] | None


class Resident(Place, ResidentParts):
    """A host with its pool membership, its servers and its next allocation."""

    lease_id: str | None
    project_id: str | None
    next: Promise | None
    drift: str
    deadline: str | None
    at_deadline: str | None


class Stranger(ResidentParts):
    """A host of the cloud that is not registered."""

    name: str
    service_name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    availability_zone: str | None


class Backlog(TypedDict):
    """A host with its allocations over time."""

    id: str
    name: str
    promises: list[Promise]


class PlanStep(TypedDict):
    """A host with the action of the next round, or the reason why the round leaves it."""

    id: str
    name: str
    pool: str
    step: str
    reason: str


class PlanLevel(TypedDict):
    """The number of hosts that are allocated at once from a time on."""

    at: str
    hosts: int


class PoolPlan(TypedDict):
    """The target size of the reservation pool with its explanation."""

    at: str
    until: str
    managed: bool
    hosts: int
    draining: int
    promised: int
    promised_at: str | None
    spare: int
    target: int
    wanted: int
    most: int
    lacking: int
    moves: list[PlanStep]
    kept: list[PlanStep]
    backlog: list[PlanLevel]
