"""Hosts of a lease, as far as a setting lets its owner know them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from sqlalchemy import Connection

from climate.cloud import CloudServer
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.policy import Caller, require
from climate.domain.status import LeaseStatus
from climate.service.hosts import unregistered_hosts
from climate.service.sharing import access
from climate.service.transaction import run
from climate.store.hosts import hosts
from climate.store.hosts.hosts import AUTHORIZED_PROJECTS, HOST_TYPE, Host

SIZES = ("vcpus", "memory_mb", "local_gb", "availability_zone")
"""Properties of every host that owners may know beside the public capabilities."""


@dataclass(frozen=True, slots=True)
class LeaseHost:
    """A whole host that a reservation holds."""

    reservation_id: UUID
    name: str
    properties: Mapping[str, object] = field(default_factory=dict)
    servers: Sequence[CloudServer] | None = ()
    """Servers of the caller's project on it, for administrators of all its projects; None if the cloud is silent."""


def listed(climate: Climate, caller: Caller, lease_id: UUID) -> list[LeaseHost]:
    """Return the hosts of a lease by their names; a lease of another project is not found unless it is shared.

    Owners see what CLIMATE_LEASE_HOSTS says, administrators all properties.
    """
    require(caller, "leases:get")
    lease, lent = run(climate, _read, climate, caller, lease_id)
    if lease.status is not LeaseStatus.ACTIVE:
        return lent
    projects = {lease.project_id, *lease.sharing.projects}
    known = projects if caller.is_admin else projects & {caller.project_id}
    return [replace(host, servers=_servers(climate, host.name, known)) for host in lent]


def _servers(climate: Climate, name: str, projects: Collection[str]) -> Sequence[CloudServer] | None:
    """Return the servers of projects on a host."""
    there = unregistered_hosts.servers_on(climate, name)
    return None if there is None else [server for server in there if server.project_id in projects]


def _read(conn: Connection, climate: Climate, caller: Caller, lease_id: UUID) -> tuple[Lease, list[LeaseHost]]:
    lease = access.get(conn, caller, lease_id)
    shown = "properties" if caller.is_admin else climate.settings.lease_hosts
    if shown == "nothing":
        return lease, []
    whole = [reservation for reservation in lease.reservations if reservation.resource_type == HOST_TYPE]
    held = {(one.id, hold.host) for one in whole for hold in one.holds}
    known = hosts.by_number(conn, {number for _, number in held})
    public = hosts.property_names(conn, private=caller.is_admin) if shown == "properties" else None
    lent = [
        LeaseHost(reservation_id, known[number].name, {} if public is None else _properties(known[number], public))
        for reservation_id, number in held
        if number in known
    ]
    return lease, sorted(lent, key=lambda host: (host.name, host.reservation_id))


def _properties(host: Host, public: frozenset[str]) -> dict[str, object]:
    extra = {name: value for name, value in host.extra.items() if name in public and name != AUTHORIZED_PROJECTS}
    return {**{name: host.own[name] for name in SIZES}, **dict(sorted(extra.items()))}
