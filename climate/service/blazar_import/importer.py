"""Import of a Blazar database: read the cloud and the engine, plan, and write what can be kept.

The hosts, the addresses and all leases that hold something are written in one transaction. No new lease is therefore
ever given what an old one holds. Leases that are over follow in portions, each in a transaction. An import that was
interrupted has therefore written nothing, or lacks only some of those.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.facts import HostEnrolled, HostFact, HostMoved, HostOpened
from climate.domain.policy import ADMIN, Caller
from climate.service.blazar_import import lease_facts, plan
from climate.service.blazar_import.lease_checks import ConvertedLease
from climate.service.blazar_import.plan import CloudView, Plan, PlannedAddress, PlannedHost, Present
from climate.service.blazar_import.records import BlazarData
from climate.service.blazar_import.timelines import Entry
from climate.service.leases import shortages
from climate.service.transaction import run
from climate.store import blazar_import
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims, leases
from climate.whole_numbers import whole_number

AUTHOR = Caller("climate:import", "", frozenset({ADMIN}), "import-blazar")
PORTION = 500
"""Leases that are written by one statement."""
LARGEST_NUMBER = 2**31 - 1
"""Largest id of a host in Blazar that becomes its number."""
NOT_RESERVABLE = "not reservable in Blazar"


@dataclass(frozen=True, slots=True)
class Report:
    """Result of an import, or of a dry run."""

    hosts: int
    addresses: int
    leases: int
    allocations: int
    """Allocations of hosts and addresses of these leases."""
    known: int
    """Leases that climate had already."""
    refusals: tuple[plan.Refusal, ...]


def run_import(climate: Climate, data: BlazarData, *, dry_run: bool = False, resume: bool = False) -> Report:
    """Import what can be kept; return what was, and what was not and why.

    Raise Conflict without `resume` if hosts, addresses or leases of the data are registered here already.
    """
    made = planned(climate, data)
    registered = [one.number for one in made.hosts.values()] + [one.number for one in made.addresses.values()]
    here = sum(number is not None for number in registered)
    if (made.known or here) and not dry_run and not resume:
        raise Conflict(
            f"Of this database, {len(made.known)} leases and {here} hosts and floating IPs are here already: "
            "continue an interrupted import with --resume"
        )
    if not dry_run:
        _write(climate, data, made)
    return _report(made)


def planned(climate: Climate, data: BlazarData) -> Plan:
    """Return the plan of an import into the present state."""
    with shortages.of_the_cloud():
        cloud = _view(climate, data)
    return plan.build(data, cloud, run(climate, _present, climate, data))


def _view(climate: Climate, data: BlazarData) -> CloudView:
    known = frozenset(climate.cloud.health())
    pools: dict[str, frozenset[str]] = {}
    for pool, names in climate.cloud.pools().items():
        for name in names:
            pools[name] = pools.get(name, frozenset()) | {pool}
    loose = [host.name for host in data.hosts if host.name in known and host.name not in pools]
    occupied = frozenset(name for name in loose if climate.cloud.servers_on(name))
    return CloudView(known, pools, occupied, has_groups=climate.settings.cloud != "openstack")


def _present(conn: Connection, climate: Climate, data: BlazarData) -> Present:
    names = {host.name for host in data.hosts}
    hosts = {place.name: place for place in pool_membership.listed(conn) if place.name in names}
    wanted = {(address.network_id, address.address) for address in data.addresses}
    addresses = {key: number for key, number in blazar_import.registered_addresses(conn).items() if key in wanted}
    held = blazar_import.host_allocations(conn, [place.host for place in hosts.values()])
    held_addresses = blazar_import.address_allocations(conn, list(addresses.values()))
    return Present(
        hosts,
        addresses,
        blazar_import.existing_leases(conn, list(_ids(data))),
        tuple((number, Entry(_name(lease), during, size)) for number, lease, during, size in held),
        tuple((number, Entry(_name(lease), during)) for number, lease, during, _ in held_addresses),
        frozenset(climate.plugins),
    )


def _ids(data: BlazarData) -> Iterator[UUID]:
    for lease in data.leases:
        try:
            yield UUID(lease.id)
        except ValueError:  # the plan refuses it
            continue


def _name(lease: UUID | None) -> str:
    return str(lease) if lease else "maintenance or cleaning here"


def _report(made: Plan) -> Report:
    reservations = [reservation for lease in made.leases for reservation in lease.reservations]
    return Report(
        hosts=sum(one.number is None for one in made.hosts.values()),
        addresses=sum(one.number is None for one in made.addresses.values()),
        leases=len(made.leases),
        allocations=sum(len(reservation.hosts) + len(reservation.addresses) for reservation in reservations),
        known=len(made.known),
        refusals=made.refusals,
    )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of hosts and addresses here, by their ids in Blazar."""

    hosts: Mapping[str, int]
    addresses: Mapping[str, tuple[int, str]]


def _write(climate: Climate, data: BlazarData, made: Plan) -> None:
    in_force = [lease for lease in made.leases if not lease.blazar.is_over]
    over = iter([lease for lease in made.leases if lease.blazar.is_over])
    private = frozenset(one.name for one in data.properties if one.private)
    try:
        numbers = run(climate, _begin, climate, made, in_force, private)
        while portion := list(islice(over, PORTION)):
            run(climate, _record_over, climate, portion, numbers)
    except IntegrityError as error:
        said = str(error.orig).splitlines()[0]
        raise Conflict(f"the engine changed during the import ({said}); repeat it with --resume") from error


def _begin(
    conn: Connection, climate: Climate, made: Plan, in_force: Sequence[ConvertedLease], private: frozenset[str]
) -> _Numbers:
    """Write all that is or will be in use, in one transaction."""
    blazar_import.extend_timeout(conn)
    now = climate.now(conn)
    numbers = _Numbers(
        _add_hosts(conn, list(made.hosts.values()), private, now),
        _add_addresses(conn, list(made.addresses.values()), now),
    )
    for at in range(0, len(in_force), PORTION):
        _record(conn, in_force[at : at + PORTION], numbers, now)
    event_claims.wake_poller(conn)
    return numbers


def _record_over(conn: Connection, climate: Climate, portion: Sequence[ConvertedLease], numbers: _Numbers) -> None:
    blazar_import.extend_timeout(conn)
    _record(conn, portion, numbers, climate.now(conn))


def _record(conn: Connection, portion: Sequence[ConvertedLease], numbers: _Numbers, now: datetime) -> None:
    tokens = iter(event_claims.tokens(conn, sum(map(lease_facts.tokens_needed, portion))))
    leases.record_many(
        conn,
        AUTHOR,
        [(None, lease_facts.facts_of(lease, numbers.hosts, numbers.addresses, tokens, now)) for lease in portion],
    )


def _add_hosts(
    conn: Connection, wanted: Sequence[PlannedHost], private: frozenset[str], now: datetime
) -> dict[str, int]:
    """Register the new ones among the hosts; return the numbers of all."""
    new = [one for one in wanted if one.number is None]
    numbers = blazar_import.host_numbers(conn, [_number(one.record.id) for one in new])
    tokens = event_claims.tokens(conn, len(new))
    facts = [_host_facts(*each, now) for each in zip(new, numbers, tokens, strict=True)]
    blazar_import.add_hosts(conn, AUTHOR, [_columns(one) for one in new], facts)
    blazar_import.name_properties(conn, {name for one in new for name in one.record.extra}, private, now)
    known = {one.record.id: one.number for one in wanted if one.number is not None}
    return known | {one.record.id: number for one, number in zip(new, numbers, strict=True)}


def _number(host_id: str) -> int | None:
    """Return the id of a host in Blazar if it can be a number here; UUIDs cannot."""
    number = whole_number(host_id)
    return number if number is not None and 0 < number <= LARGEST_NUMBER else None


def _host_facts(one: PlannedHost, number: int, token: int, now: datetime) -> list[HostFact]:
    record = one.record
    enrolled = "reservation" if one.reservation_id else one.pool
    facts: list[HostFact] = [HostEnrolled(number, now, record.name, enrolled, dict(record.extra), token)]
    if one.reservation_id:
        reason = f"lent by Blazar to reservation {one.reservation_id}"
        facts.append(HostMoved(now, one.pool, reason, token, one.reservation_id))
    if not record.reservable:
        facts.append(HostOpened(now, False, NOT_RESERVABLE))
    return facts


def _columns(one: PlannedHost) -> dict[str, object]:
    """Return the columns of a host that no fact has."""
    record = one.record
    return {
        "service_name": record.service_name,
        "vcpus": record.vcpus,
        "memory_mb": record.memory_mb,
        "local_gb": record.local_gb,
        "cpu_info": record.cpu_info,
        "hypervisor_type": record.hypervisor_type,
        "hypervisor_version": record.hypervisor_version,
        "availability_zone": record.availability_zone or None,
    }


def _add_addresses(conn: Connection, wanted: Sequence[PlannedAddress], now: datetime) -> dict[str, tuple[int, str]]:
    """Register the new ones among the floating IPs, with their ids; return the numbers of all."""
    new = [one.record for one in wanted if one.number is None]
    rows = [
        {
            "id": UUID(one.id),
            "network_id": one.network_id,
            "subnet_id": one.subnet_id,
            "address": one.address,
            "created_at": one.created_at or now,
        }
        for one in new
    ]
    made = blazar_import.add_addresses(conn, rows)
    known = {one.record.id: one.number for one in wanted if one.number is not None}
    numbers = known | {str(one.id): made[UUID(one.id)] for one in new}
    return {one.record.id: (numbers[one.record.id], one.record.address) for one in wanted}
