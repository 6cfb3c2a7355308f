"""The leases that the benchmarks ask for."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from benchmarks.seed import FIRST, YEARS
from climate.service.leases.leases import LeaseRequest

SPEC = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": '[">=", "$vcpus", "4"]',
    "resource_properties": "",
    "before_end": "default",
}
"""One host that all of the seeded ones are as good as."""


def windows(now: datetime, seed: int = 0) -> Iterator[tuple[datetime, datetime]]:
    """One hour each, anywhere among the seeded leases; the same ones for the same seed."""
    chance = random.Random(seed)
    base = now.replace(minute=0, second=0, microsecond=0) + FIRST
    while True:
        start = base + timedelta(hours=chance.randrange(int(YEARS / timedelta(hours=1))))
        yield start, start + timedelta(hours=1)


def orders(now: datetime, seed: int = 0) -> Iterator[LeaseRequest]:
    """Leases of one host for such windows."""
    for start, end in windows(now, seed):
        yield LeaseRequest(f"bench-{seed}", start, end, reservations=(SPEC,))
