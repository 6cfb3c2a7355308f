"""Floating addresses as tests register them and ask for them, and who was promised what, counted by the leases."""

from datetime import datetime
from itertools import pairwise
from typing import Any

from climate.cloud import ExternalNetwork, ExternalSubnet
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import HoldState
from climate.service import floating_ips
from climate.service.leases import leases
from climate.store.floating_ips import FloatingIp
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN

NETWORK = "net-out"
SUBNET = ExternalSubnet("subnet-out", "203.0.113.0/24", "203.0.113.1", (("203.0.113.100", "203.0.113.199"),))
OUTSIDE = ExternalNetwork(NETWORK, "public", (SUBNET,))


def spelled(number: int) -> str:
    return f"203.0.113.{number}"


def registered(climate: Climate, count: int, first: int = 10) -> list[FloatingIp]:
    """So many addresses of a network outside, 203.0.113.10 the first of them."""
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.external = {NETWORK: OUTSIDE}
    numbers = range(first, first + count)
    return [floating_ips.register(climate, ADMIN, NETWORK, spelled(number)) for number in numbers]


def addresses_wanted(amount: int = 1, *required: str, **more: Any) -> dict[str, Any]:
    wanted = {"network_id": NETWORK, "amount": amount, "required_floatingips": list(required)}
    return {"resource_type": "virtual:floatingip", **wanted, **more}


def allocated(lease: Lease) -> list[str]:
    return [hold.address for reservation in lease.reservations for hold in reservation.addresses]


def promised_twice(climate: Climate) -> list[str]:
    """Addresses that two leases count on at one time, by the leases themselves and not by the constraint."""
    taken: dict[str, list[tuple[datetime, datetime]]] = {}
    for lease in leases.listed(climate, ADMIN, Listing()):
        for hold in (hold for r in lease.reservations for hold in r.addresses):
            if lease.hold_state is not HoldState.RELEASED:
                taken.setdefault(hold.address, []).append((hold.during.start, hold.during.end))
    pairs = [(address, *pair) for address, periods in taken.items() for pair in pairwise(sorted(periods))]
    return [address for address, one, other in pairs if one[1] > other[0]]
