"""Room for servers against a calendar kept by hand: nothing beyond what hosts have, nothing refused that fits.

Reservations of whole hosts and of slots, moved, grown and given up at random
over a small pool.  Time is looked at instant by instant, and where affinity
asks for it every host is tried.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.campaign import length
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.capacity_factory import PARTS, all_leases, change, hours, overruns, servers, sizes
from tests.service.lease_actions import hosts_wanted

spans = st.tuples(st.integers(1, 8), st.integers(1, 4))
room = st.builds(
    lambda amount, vcpus, memory, affinity: servers(amount, vcpus, affinity, memory_mb=memory),
    st.integers(1, 6),
    st.sampled_from([1, 2, 3, 5]),
    st.sampled_from([128, 3000]),
    st.sampled_from([True, False, None, None]),
)
book = st.tuples(st.just("book"), spans, st.one_of(room, room, st.integers(1, 2).map(hosts_wanted)))
move = st.tuples(st.just("move"), st.integers(0, 9), spans)
alter = st.tuples(st.just("alter"), st.integers(0, 9), room)
drop = st.tuples(st.just("drop"), st.integers(0, 9))
steps = st.lists(st.one_of(book, book, book, move, alter, drop), min_size=4, max_size=14)


class Calendar:
    """What could be had, worked out by hand."""

    def __init__(self, climate: Climate, without: Lease | None = None) -> None:
        found = [lease for lease in all_leases(climate) if without is None or lease.id != without.id]
        self.held = [(r.spec, hold) for lease in found for r in lease.reservations for hold in r.holds]
        self.sizes = sizes(climate)

    def has_room(self, spec: dict[str, Any], period: Period) -> bool:
        free = [self.free(host, spec, period) for host in self.sizes]
        if spec["affinity"] is None:
            return sum(free) >= spec["amount"]
        return max(free) >= spec["amount"] if spec["affinity"] else sum(n > 0 for n in free) >= spec["amount"]

    def free(self, host: int, spec: dict[str, Any], period: Period) -> int:
        """Servers are put on the host one by one until at some instant one of them does not fit."""
        begins = [hold.during.start for _, hold in self.held if period.start < hold.during.start < period.end]
        taken = [self.taken(host, moment) for moment in (period.start, *begins)]
        if None in taken:
            return 0
        return next(n for n in range(20) if any(self.too_much(host, used, spec, n + 1) for used in taken if used))

    def too_much(self, host: int, used: list[int], spec: dict[str, Any], count: int) -> bool:
        parts = zip(self.sizes[host], used, PARTS, strict=True)
        return any(so_far + count * spec[part] > whole for whole, so_far, part in parts)

    def taken(self, host: int, moment: datetime) -> list[int] | None:
        """What is taken at a moment; None: somebody has the whole host."""
        now = [(spec, hold) for spec, hold in self.held if hold.host == host]
        now = [(spec, hold) for spec, hold in now if hold.during.start <= moment < hold.during.end]
        if any(not hold.slots for _, hold in now):
            return None
        return [sum(hold.slots * spec[part] for spec, hold in now) for part in PARTS]


@dataclass
class Play:
    climate: Climate
    now: datetime

    def period(self, span: tuple[int, int]) -> Period:
        start = hours(self.now, span[0])
        return Period(start, start + timedelta(hours=span[1]))

    def one(self, place: int) -> Lease | None:
        found = all_leases(self.climate)
        return found[place % len(found)] if found else None

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, step[0])(*step[1:])

    def book(self, span: tuple[int, int], spec: dict[str, Any]) -> None:
        period = self.period(span)
        order = LeaseRequest("l", period.start, period.end, None, [spec])
        fits = Calendar(self.climate).has_room(spec, period) if "amount" in spec else None
        self._judged(fits, lambda: leases.create(self.climate, MEMBER, order))

    def move(self, place: int, span: tuple[int, int]) -> None:
        lease = self.one(place)
        if lease is None:
            return
        spec, period = dict(lease.reservations[0].spec), self.period(span)
        fits = Calendar(self.climate, lease).has_room(spec, period) if "amount" in spec else None
        wanted = Changes(start=period.start, end=period.end)
        self._judged(fits, lambda: update.update(self.climate, MEMBER, lease.id, wanted))

    def alter(self, place: int, spec: dict[str, Any]) -> None:
        lease = self.one(place)
        if lease is None or "amount" not in lease.reservations[0].spec:
            return
        given = {name: value for name, value in spec.items() if name != "resource_type"}
        fits = Calendar(self.climate, lease).has_room(spec, lease.period)
        self._judged(fits, lambda: change(self.climate, lease, **given))

    def drop(self, place: int) -> None:
        if lease := self.one(place):
            leases.delete(self.climate, MEMBER, lease.id)

    def _judged(self, fits: bool | None, act: Any) -> None:
        """Whether it is granted has to be what the calendar says; None where it was not asked."""
        try:
            act()
            granted = True
        except NotEnoughHosts:
            granted = False
        assert fits in (granted, None), "granted without room" if granted else "refused without need"


@pytest.fixture
def small(climate: Climate) -> Climate:
    """Two small hosts and one large one."""
    for host in (3, 4, 6, 7, 8):
        inventory.remove(climate, ADMIN, str(host))
    return climate


@settings(max_examples=length(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_nothing_beyond_and_nothing_refused_without_need(
    small: Climate, clock: Clock, found: list[tuple[Any, ...]]
) -> None:
    for lease in all_leases(small):
        leases.delete(small, MEMBER, lease.id)
    play = Play(small, clock.time)
    for step in found:
        play.do(step)
        assert overruns(small) == []
    assert consistency_check.differences(small) == []
