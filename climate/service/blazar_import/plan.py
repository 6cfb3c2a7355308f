"""Plan of an import: which hosts, addresses and leases of Blazar climate can keep, and why not the others.

A lease is imported as a whole or not at all. A host is refused with the lease that has begun on it, because its servers
run there; whatever else is on that host is refused then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from climate.cloud import FREEPOOL
from climate.domain.errors import InvalidInput
from climate.domain.hosts.pools import BOOKABLE, HostPlace, Pool
from climate.service.blazar_import import lease_checks, reservation_conversion
from climate.service.blazar_import.lease_checks import ConvertedLease
from climate.service.blazar_import.records import HOSTS, BlazarAddress, BlazarData, BlazarHost, BlazarLease
from climate.service.blazar_import.reservation_conversion import ConvertedReservation, check_ipv4
from climate.service.blazar_import.timelines import Entry, Timelines
from climate.service.hosts.inventory import check_names

OF_HOST, OF_ADDRESS, OF_LEASE = "host", "floating IP", "lease"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that is not imported: the reason, and what to do about it."""

    kind: str
    id: str
    name: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class CloudView:
    """State of the cloud, by names of hosts."""

    known: frozenset[str]
    pools: Mapping[str, frozenset[str]]
    """Pools of each host that is in any."""
    occupied: frozenset[str] = frozenset()
    """Hosts in no pool that have servers."""
    has_groups: bool = True
    """Whether the cloud can give a server group a chosen id."""


@dataclass(frozen=True, slots=True)
class Present:
    """Contents of climate before the import."""

    hosts: Mapping[str, HostPlace] = field(default_factory=dict)
    """Registered hosts by name."""
    addresses: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Numbers of registered addresses by network and address."""
    leases: frozenset[UUID] = frozenset()
    """Leases of Blazar that climate has, whatever has become of them."""
    entries: tuple[tuple[int, Entry], ...] = ()
    """Allocations in force of registered hosts by number."""
    address_entries: tuple[tuple[int, Entry], ...] = ()
    """Allocations in force of registered addresses by number."""
    types: frozenset[str] = frozenset()
    """Resource types that have a plugin."""


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host with its pool; `number` is set if climate has it already."""

    record: BlazarHost
    pool: Pool
    reservation_id: UUID | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedAddress:
    """An address; `number` is set if climate has it already."""

    record: BlazarAddress
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Result: what is imported, in order, and what is not."""

    hosts: Mapping[str, PlannedHost]
    """By id in Blazar."""
    addresses: Mapping[str, PlannedAddress]
    """By id in Blazar."""
    leases: tuple[ConvertedLease, ...]
    known: tuple[UUID, ...]
    """Leases that climate has already."""
    refusals: tuple[Refusal, ...]


def build(data: BlazarData, cloud: CloudView, present: Present) -> Plan:
    """Return the plan; leases that have begun come first, then by their creation."""
    draft = _Draft(data, cloud, present)
    while draft.refuse_more():
        pass
    return draft.plan()


class _Draft:
    """A plan in the making. Refused leases and hosts lead to further ones, so it is made in rounds."""

    def __init__(self, data: BlazarData, cloud: CloudView, present: Present) -> None:
        self.data, self.cloud, self.present = data, cloud, present
        self.refused: dict[tuple[str, str], Refusal] = {}
        self.hosts = {one.record.id: one for one in self._hosts()}
        self.addresses = {one.record.id: one for one in self._addresses()}
        self.known = tuple(sorted(present.leases))
        known = set(map(str, self.known))
        new = (lease for lease in data.leases if lease.id not in known)
        ordered = sorted(new, key=lambda lease: (not lease.has_begun, lease.created_at or lease.start, lease.id))
        self.leases = [converted for lease in ordered if (converted := self._converted(lease))]
        self.accepted: list[ConvertedLease] = []

    def plan(self) -> Plan:
        return Plan(self.hosts, self.addresses, tuple(self.accepted), self.known, tuple(self.refused.values()))

    def refuse(self, kind: str, number: str, name: str, reason: str, remedy: str) -> None:
        self.refused.setdefault((kind, number), Refusal(kind, number, name, reason, remedy))

    def refuse_more(self) -> bool:
        """Check all leases against the hosts that are left; return whether hosts had to be refused then."""
        timelines, self.accepted = self._timelines(), []
        for lease in self.leases:
            if why := self._why_not(lease, timelines):
                self.refuse(OF_LEASE, lease.blazar.id, lease.blazar.name, *why)
                continue
            self.accepted.append(lease)
            for resource, _, entry in self._entries(lease):
                timelines.add(resource, entry)
        lost = list(self._lost_hosts())
        for number, why_lost in lost:
            self.refuse(OF_HOST, number, self.hosts.pop(number).record.name, *why_lost)
        return bool(lost)

    def _lost_hosts(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield hosts on which a refused lease has begun."""
        imported = {lease.blazar.id for lease in self.accepted} | set(map(str, self.known))
        left = set(self.hosts)
        for lease in self.data.leases:
            if lease.id in imported or not lease.has_begun:
                continue
            for number in sorted({host for reservation in lease.reservations for host in reservation.hosts} & left):
                left.discard(number)
                reason = f"the lease {lease.id} has begun on it, and is not imported"
                yield number, (reason, "see the reason of the lease")

    def _converted(self, lease: BlazarLease) -> ConvertedLease | None:
        try:
            return lease_checks.convert(lease, self.present.types, has_groups=self.cloud.has_groups)
        except lease_checks.NotKept as error:
            self.refuse(OF_LEASE, lease.id, lease.name, error.reason, error.remedy)
        return None

    def _why_not(self, lease: ConvertedLease, timelines: Timelines) -> tuple[str, str] | None:
        if lease.blazar.is_over:
            return None
        for reservation in lease.reservations:
            if missing := next((host for host in reservation.hosts if host not in self.hosts), None):
                return (
                    f"its host {missing} is not imported",
                    "see the reason of the host, or delete the lease in Blazar",
                )
            if missing := next((number for number in reservation.addresses if number not in self.addresses), None):
                return f"its floating IP {missing} is not imported", "see the reason of the floating IP"
            if astray := self._not_lent(lease, reservation):
                return astray
        return self._overlap(lease, timelines)

    def _not_lent(self, lease: ConvertedLease, one: ConvertedReservation) -> tuple[str, str] | None:
        """Return the reason if Blazar has started the lease, and a host is not in its aggregate."""
        if one.resource_type != HOSTS or not lease.is_active:
            return None
        for number in one.hosts:
            host = self.hosts[number]
            if (host.pool, host.reservation_id) != (Pool.LENT, one.id):
                reason = f"it is active, but its host {host.record.name} is not in the aggregate {one.id}"
                return reason, f"move the host from {FREEPOOL} to that aggregate, or end the lease in Blazar"
        return None

    def _overlap(self, lease: ConvertedLease, timelines: Timelines) -> tuple[str, str] | None:
        own = Timelines()
        for resource, host, entry in self._entries(lease):
            capacity = lease_checks.capacity(host.record) if host and entry.size else None
            other = timelines.conflict(resource, entry, capacity) or own.conflict(resource, entry, capacity)
            if other is not None:
                what = f"the host {host.record.name}" if host else "a floating IP"
                if other == entry.lease:
                    return f"its own allocations of {what} overlap, or are larger than the host", lease_checks.REPAIR
                reason = f"its allocation of {what} overlaps with the lease {other}"
                return reason, "update or delete one of them in Blazar"
            own.add(resource, entry)
        return None

    def _entries(self, lease: ConvertedLease) -> Iterator[tuple[object, PlannedHost | None, Entry]]:
        """Yield the resources that a lease holds: the key, the host if it is one, and the allocation."""
        if lease.blazar.is_over:
            return
        for reservation in lease.reservations:
            for number, slots in reservation.hosts.items():
                size = reservation.size.times(slots) if reservation.size else None
                yield (OF_HOST, number), self.hosts.get(number), Entry(lease.blazar.id, lease.period, size)
            for number in reservation.addresses:
                yield (OF_ADDRESS, number), None, Entry(lease.blazar.id, lease.period)

    def _timelines(self) -> Timelines:
        """Return the allocations that climate has."""
        result = Timelines()
        hosts = {one.number: number for number, one in self.hosts.items() if one.number is not None}
        for number, entry in self.present.entries:
            if number in hosts:
                result.add((OF_HOST, hosts[number]), entry)
        addresses = {one.number: number for number, one in self.addresses.items() if one.number is not None}
        for number, entry in self.present.address_entries:
            if number in addresses:
                result.add((OF_ADDRESS, addresses[number]), entry)
        return result

    def _hosts(self) -> Iterator[PlannedHost]:
        active = {
            reservation.id: set(reservation.hosts)
            for lease in self.data.leases
            if lease.has_begun
            for reservation in lease.reservations
        }
        names: set[str] = set()
        for record in self.data.hosts:
            place = self.present.hosts.get(record.name)
            try:
                planned = self._host(record, names, active) if place is None else _registered(record, place, names)
            except lease_checks.NotKept as error:
                self.refuse(OF_HOST, record.id, record.name, error.reason, error.remedy)
                continue
            names.add(record.name)
            yield planned

    def _host(self, record: BlazarHost, names: set[str], active: Mapping[str, set[str]]) -> PlannedHost:
        pool = self._pool(record, names, active)
        return PlannedHost(record, Pool.LENT if pool else Pool.RESERVATION, pool)

    def _pool(self, record: BlazarHost, names: set[str], active: Mapping[str, set[str]]) -> UUID | None:
        """Return the reservation that the host is lent to; None for a host of the reservation pool."""
        try:
            check_names(record.extra)
        except InvalidInput as error:
            raise lease_checks.NotKept(str(error), "rename the capability in Blazar") from None
        if record.name not in self.cloud.known:
            remedy = "register it in the cloud again, or delete it and its leases in Blazar"
            raise lease_checks.NotKept(f"the cloud has no hypervisor named {record.name!r}", remedy)
        if record.name in names:
            raise lease_checks.NotKept("another host of Blazar has the same name", "delete one of them in Blazar")
        pools = self.cloud.pools.get(record.name, frozenset())
        if not pools:
            if record.name in self.cloud.occupied:
                remedy = f"add it to the aggregate {FREEPOOL}, or migrate the servers away"
                raise lease_checks.NotKept("it has servers and is in no aggregate of Blazar", remedy)
            return None
        if pools == {FREEPOOL}:
            return None
        (pool, *others) = sorted(pools)
        if others or record.id not in active.get(pool, ()):
            remedy = f"leave it only in the aggregate {FREEPOOL}, or in that of the active lease that has it"
            raise lease_checks.NotKept(f"it is in {', '.join(sorted(pools))}, not as its leases say", remedy)
        return UUID(pool)

    def _addresses(self) -> Iterator[PlannedAddress]:
        for record in self.data.addresses:
            number = self.present.addresses.get((record.network_id, record.address))
            try:
                check_ipv4(record.address)
                reservation_conversion.uuid_of(record.id, "row")
            except InvalidInput as error:
                self.refuse(OF_ADDRESS, record.id, record.address, str(error), "delete it and its leases in Blazar")
                continue
            if not record.reservable:
                why = ("it is not reservable in Blazar", "make it reservable there, or delete it")
                self.refuse(OF_ADDRESS, record.id, record.address, *why)
                continue
            yield PlannedAddress(record, number)


def _registered(record: BlazarHost, place: HostPlace, names: set[str]) -> PlannedHost:
    """Return a host that climate has; raise NotKept for one that leases cannot hold."""
    if record.name in names:
        raise lease_checks.NotKept("another host of Blazar has the same name", "delete one of them in Blazar")
    if place.pool not in BOOKABLE:
        remedy = "move it to the reservation pool first"
        raise lease_checks.NotKept(f"it is registered here, in the pool {place.pool}", remedy)
    return PlannedHost(record, place.pool, place.reservation_id, place.host)
