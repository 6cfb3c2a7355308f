"""Hosts, their pools, power and maintenance."""

from typing import NotRequired, TypedDict

from climate.cli.response_types.leases import Actor


class Host(TypedDict):
    """A host; its extra capabilities are further keys."""

    id: str
    vcpus: int
    cpu_info: str
    hypervisor_type: str
    hypervisor_version: int
    hypervisor_hostname: str
    service_name: str
    memory_mb: int
    local_gb: int
    status: str | None
    availability_zone: str | None
    trust_id: str | None
    reservable: bool
    created_at: str
    updated_at: str | None


class HostWithGpus(Host):
    """A host of the demo, with the capability that the demo gives it."""

    gpu_count: NotRequired[str]


class Held(TypedDict):
    """An allocation of a reservation."""

    id: str
    lease_id: str
    start_date: str
    end_date: str


class HostAllocation(TypedDict):
    """A host with the reservations that have it."""

    resource_id: str
    reservations: list[Held]


class HostProperty(TypedDict):
    """A capability of hosts; the last keys come with `detail`."""

    property: str
    private: NotRequired[bool]
    values: NotRequired[list[str]]


class HostFact(TypedDict, total=False):
    """The content of an entry of a host's history; its kind says which keys it has."""

    pool: str
    reason: str
    reservable: bool
    on: bool


class HostEntry(TypedDict):
    """An entry of the history of a host."""

    version: int
    kind: str
    at: str
    actor: Actor
    request_id: str
    body: HostFact


class Place(TypedDict):
    """The pool membership of a host."""

    id: str
    name: str
    pool: str
    since: str
    reason: str
    until: str | None
    home: str
    reservable: bool
    on: bool
    reservation_id: str | None
    version: int


class Maintenance(TypedDict):
    """A maintenance window of a host."""

    id: str
    host_id: str
    host: str
    start_date: str
    end_date: str | None
    reason: str
    state: str
    move_servers: bool
    created_by: str
    created_at: str
    updated_at: str | None


class LeaseInTheWay(TypedDict):
    """A lease that overlaps a window: whether it got another host, and how many it lacks."""

    id: str
    name: str
    project_id: str
    start_date: str
    end_date: str
    replaced: bool
    missing: int


class ChangedMaintenance(TypedDict):
    """A window after a change, and the leases that overlap it."""

    maintenance: Maintenance
    leases: list[LeaseInTheWay]


class Power(TypedDict):
    """The power settings and the power state of a host."""

    id: str
    name: str
    pool: str
    driver: str
    settings: dict[str, object]
    secrets: list[str]
    watts: int | None
    on: bool
    wanted: str | None
    wanted_at: str | None
    state: str
    seen_at: str | None
    changed_at: str | None
    failures: int
    error: str
    created_at: str
    updated_at: str | None


class HoursOff(TypedDict):
    """The hours for which a host was off."""

    id: str
    name: str
    hours_off: float


_ReportPeriod = TypedDict("_ReportPeriod", {"from": str, "to": str})


class PowerReport(_ReportPeriod):
    """The hours for which hosts were off, and the energy in kWh that this saved."""

    hours_off: float
    kwh: float
    hosts: list[HoursOff]
