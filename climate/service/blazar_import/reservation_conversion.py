"""Conversion of Blazar's reservations to those of climate; what climate cannot keep raises InvalidInput."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from uuid import UUID

from climate.domain.errors import InvalidInput
from climate.domain.hosts import requirements
from climate.domain.hosts.shared_capacity import Size
from climate.plugin.shared_capacity import TERMINATE, demand_of
from climate.service.blazar_import.records import (
    FLAVORS,
    BlazarReservation,
    WantedAddresses,
    WantedHosts,
    WantedServers,
)

COUNT_RANGE = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")
DEFAULT = "default"
BEFORE_END = ("", "snapshot", "email", DEFAULT)
"""Actions before the end that both services have."""

Spec = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ConvertedReservation:
    """A reservation of climate, with hosts and addresses by their ids in Blazar."""

    id: UUID
    resource_type: str
    spec: Spec
    hosts: Mapping[str, int] = field(default_factory=dict)
    """Slots by host; 0: the whole host."""
    addresses: tuple[str, ...] = ()
    size: Size | None = None
    """Size of one server; None if hosts are reserved as a whole, or none are."""
    missing: int = 0
    """Number of promised hosts that it lacks."""
    changed: bool = False


def convert(reservation: BlazarReservation) -> ConvertedReservation:
    """Return the reservation with the same id, request and allocations."""
    number = uuid_of(reservation.id, "reservation")
    match reservation.wanted:
        case WantedHosts() as wanted:
            return _hosts(number, reservation, wanted)
        case WantedServers() as wanted:
            return _servers(number, reservation, wanted)
        case WantedAddresses() as wanted:
            return _addresses(number, reservation, wanted)
    raise InvalidInput(f"its reservation {reservation.id} has no row with the request of {reservation.resource_type}")


def uuid_of(text: str, what: str) -> UUID:
    """Parse an id of Blazar."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(f"the id {text!r} of its {what} is no UUID") from None


def _hosts(number: UUID, reservation: BlazarReservation, hosts: WantedHosts) -> ConvertedReservation:
    matched = COUNT_RANGE.fullmatch(hosts.count_range)
    if matched is None:
        raise InvalidInput(f"its reservation {number} has the count range {hosts.count_range!r}, not one like 1-2")
    least = int(matched[1])
    for text in (hosts.hypervisor_properties, hosts.resource_properties):
        requirements.parse(text)
    spec: dict[str, object] = {
        "min": least,
        "max": int(matched[2] or least),
        "hypervisor_properties": hosts.hypervisor_properties,
        "resource_properties": hosts.resource_properties,
        "before_end": hosts.before_end if hosts.before_end in BEFORE_END else DEFAULT,
        "on_end": TERMINATE,
        "grace_period": 0,
    }
    return ConvertedReservation(
        number,
        reservation.resource_type,
        spec,
        dict.fromkeys(reservation.hosts, 0),
        missing=max(1, least - len(set(reservation.hosts))) if reservation.missing_resources else 0,
        changed=reservation.resources_changed,
    )


def _servers(number: UUID, reservation: BlazarReservation, servers: WantedServers) -> ConvertedReservation:
    size, properties = Size(servers.vcpus, servers.memory_mb, servers.disk_gb), servers.resource_properties
    if reservation.resource_type == FLAVORS:
        size, properties = _flavor(properties)
    else:
        requirements.parse(properties)
    spec: dict[str, object] = {
        "vcpus": size.vcpus,
        "memory_mb": size.memory_mb,
        "disk_gb": size.disk_gb,
        "amount": servers.amount,
        "affinity": servers.affinity,
        "resource_properties": properties,
        "on_end": TERMINATE,
        "grace_period": 0,
        "flavor_id": str(number),
        "server_group_id": servers.server_group_id,
        "aggregate_id": None,
    }
    return ConvertedReservation(
        number,
        reservation.resource_type,
        spec,
        dict(Counter(reservation.hosts)),
        size=size,
        missing=max(1, servers.amount - len(reservation.hosts)) if reservation.missing_resources else 0,
        changed=reservation.resources_changed,
    )


def _flavor(text: str) -> tuple[Size, str]:
    """Return the demand of a server of a flavor, and the flavor as climate stores it."""
    try:
        flavor = json.loads(text)
        described = {
            "id": str(flavor["id"]),
            "name": str(flavor["name"]),
            "vcpus": int(flavor["vcpus"]),
            "ram": int(flavor["ram"]),
            "disk": int(flavor["disk"]) + int(flavor.get("OS-FLV-EXT-DATA:ephemeral") or 0),
            "extra_specs": {str(key): str(value) for key, value in flavor["extra_specs"].items()},
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"its flavor {text[:80]!r} is not one that Blazar stores") from None
    return demand_of(described).size, json.dumps(described, sort_keys=True)


def _addresses(number: UUID, reservation: BlazarReservation, addresses: WantedAddresses) -> ConvertedReservation:
    for address in addresses.required:
        check_ipv4(address)
    spec: dict[str, object] = {
        "network_id": addresses.network_id,
        "amount": addresses.amount,
        "required_floatingips": list(addresses.required),
        "grace_period": 0,
    }
    return ConvertedReservation(number, reservation.resource_type, spec, addresses=reservation.addresses)


def check_ipv4(address: str) -> None:
    """Raise InvalidInput unless the text is an IPv4 address."""
    try:
        IPv4Address(address)
    except AddressValueError:
        raise InvalidInput(f"the address {address} is no IPv4 address") from None
