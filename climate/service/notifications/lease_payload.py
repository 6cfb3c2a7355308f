"""Payload of a lease in notifications to other services, with Blazar's keys."""

from collections.abc import Mapping
from datetime import UTC, datetime

from climate.domain.lease import Lease, Reservation
from climate.store.hosts.hosts import Host
from climate.store.journal import fact_codec

Body = dict[str, object]


def of(lease: Lease, hosts: Mapping[int, Host] | None = None) -> Body:
    """Return the payload of a lease; with `hosts`, it has the resources of each reservation."""
    return {
        "lease_id": str(lease.id),
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": None,
        "start_date": _date(lease.period.start),
        "end_date": _date(lease.period.end),
        "status": str(lease.status),
        "degraded": lease.degraded,
        "created_at": _date(lease.created_at),
        "updated_at": _date(lease.updated_at) if lease.updated_at else None,
        **({"series_id": str(lease.series_id)} if lease.series_id else {}),
        **({"sharing": fact_codec.encode(lease.sharing)} if lease.sharing else {}),
        **({"parent_id": str(lease.parent.lease_id)} if lease.parent else {}),
        "reservations": [_reservation(lease, reservation, hosts) for reservation in lease.reservations],
        "events": [{"event_type": str(e.type), "time": _date(e.due_at), "status": str(e.status)} for e in lease.events],
    }


def _reservation(lease: Lease, one: Reservation, hosts: Mapping[int, Host] | None) -> Body:
    body = {
        **fact_codec.encode(one.spec),
        "id": str(one.id),
        "resource_id": one.resource_id or str(one.id),
        "resource_type": one.resource_type,
        "status": str(lease.status_of(one)),
    }
    if hosts is None:
        return body
    held = [_host(hosts[number]) for number in one.hosts if number in hosts]
    return {**body, "allocations": [*held, *({"floating_ip_address": hold.address} for hold in one.addresses)]}


def _host(host: Host) -> Body:
    return {"id": str(host.id), "hypervisor_hostname": host.name, "extra": dict(host.extra)}


def _date(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
