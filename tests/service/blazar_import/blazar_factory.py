"""Hosts and leases of Blazar for tests, all alike but for what is given."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from climate.service.blazar_import.records import (
    HOSTS,
    SERVERS,
    BlazarAddress,
    BlazarEvent,
    BlazarHost,
    BlazarLease,
    BlazarReservation,
    Wanted,
    WantedHosts,
    WantedServers,
)
from tests.service.blazar_import.recordings import number

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ONE_HOST = WantedHosts("1-1", "", "", "default")
STATES = {
    "PENDING": ("UNDONE", "UNDONE"),
    "ACTIVE": ("DONE", "UNDONE"),
    "TERMINATED": ("DONE", "DONE"),
    "ERROR": ("ERROR", "UNDONE"),
}


def hour(count: float) -> datetime:
    return NOON + timedelta(hours=count)


def host(host_id: str, name: str = "", *, reservable: bool = True, **extra: str) -> BlazarHost:
    name = name or f"h{host_id}"
    return BlazarHost(
        id=host_id,
        name=name,
        service_name=name,
        vcpus=8,
        memory_mb=8192,
        local_gb=100,
        cpu_info="{}",
        hypervisor_type="QEMU",
        hypervisor_version=1,
        availability_zone="nova",
        reservable=reservable,
        created_at=NOON,
        extra=extra,
    )


def address(last: int, *, reservable: bool = True) -> BlazarAddress:
    text = f"203.0.113.{last}"
    return BlazarAddress(str(number(text)), "net", "subnet", text, reservable, NOON)


def servers(amount: int, vcpus: int = 1, *, affinity: bool | None = None, properties: str = "") -> WantedServers:
    return WantedServers(vcpus, 1, 1, amount, affinity, properties, None)


def reservation(
    name: str, hosts: Sequence[str] = (), wanted: Wanted | None = ONE_HOST, resource_type: str = ""
) -> BlazarReservation:
    usual = SERVERS if isinstance(wanted, WantedServers) else HOSTS
    return BlazarReservation(str(number(name)), resource_type or usual, "", False, False, wanted, tuple(hosts))


def lease(
    name: str,
    hosts: Sequence[str] = (),
    start: float = 1,
    end: float = 2,
    status: str = "PENDING",
    *,
    wanted: Wanted | None = ONE_HOST,
    created: float = -1,
) -> BlazarLease:
    """A lease with one reservation, whose id is that of the name with a dash."""
    times = {"start_lease": hour(start), "end_lease": hour(end)}
    states = STATES.get(status, ("UNDONE", "UNDONE"))
    return BlazarLease(
        id=str(number(name)),
        name=name,
        user_id="user",
        project_id="project",
        start=hour(start),
        end=hour(end),
        status=status,
        created_at=hour(created),
        reservations=(reservation(f"{name}-", hosts, wanted),),
        events=tuple(
            BlazarEvent(str(number(f"{name} {kind}")), kind, at, state)
            for (kind, at), state in zip(times.items(), states, strict=True)
        ),
    )
