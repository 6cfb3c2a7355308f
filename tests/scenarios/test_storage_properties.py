"""Storage against a calendar kept by hand: nothing beyond what pools have, nothing refused that fits.

Leases are booked, moved, changed, ended and given up at random over two pools.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import NotEnoughStorage
from climate.domain.facts import FOREVER
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import LeaseStatus
from climate.service import kept_volumes, storage_pools
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from tests.campaign import length
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.capacity_factory import all_leases, change
from tests.service.lease_actions import make, run_due
from tests.service.storage_factory import counted, fits, misplaced, overfull, overruns, pool, room, storage_wanted

spans = st.tuples(st.integers(1, 5), st.integers(1, 3))
wishes = st.tuples(
    st.sampled_from([4, 3, 5, 2]), st.sampled_from([1, 1, 2]), st.sampled_from(["delete", "delete", "delete", "keep"])
)
book = st.tuples(st.just("book"), spans, wishes)
move = st.tuples(st.just("move"), st.integers(0, 9), spans)
alter = st.tuples(st.just("alter"), st.integers(0, 9), wishes)
drop = st.tuples(st.just("drop"), st.integers(0, 9), st.none())
grow = st.tuples(st.just("grow"), st.integers(0, 9), st.integers(1, 5))
prolong = st.tuples(st.just("prolong"), st.integers(0, 9), st.integers(1, 3))
clear = st.tuples(st.just("clear"), st.integers(0, 9), st.none())
wait = st.tuples(st.just("wait"), st.integers(1, 3), st.none())
steps = st.lists(
    st.one_of(book, book, book, book, move, alter, drop, wait, wait, grow, prolong, clear), min_size=6, max_size=16
)


def asked_for(wish: tuple[int, int, str]) -> dict[str, Any]:
    size, volumes, on_end = wish
    return storage_wanted(size * volumes, volumes=volumes, on_end=on_end)


class Play:
    """Does each step, and knows beforehand whether it fits."""

    def __init__(self, climate: Climate, clock: Clock) -> None:
        assert isinstance(climate.cloud, FakeCloud)
        self.climate, self.clock, self.cloud = climate, clock, climate.cloud
        self.known = all_leases(climate)

    def fits(self, asked: dict[str, Any], period: Period, without: Lease | None = None) -> bool:
        """Whether it can be had, by trying every instant at which anything begins in every pool."""
        return fits(storage_pools.listed(self.climate, ADMIN), counted(self.known, without), asked, period)

    def fits_in_place(self, lease: Lease, size_gb: int, end: datetime) -> bool:
        """Whether the volumes of a running lease can have that size in all and that end where they are."""
        asked, others = lease.reservations[0].spec, counted(self.known, lease)
        last = FOREVER if asked["on_end"] == "keep" else end
        known = {one.number: one for one in storage_pools.listed(self.climate, ADMIN)}
        return all(
            hold.amount * size_gb // asked["size_gb"]
            <= room(known[hold.number], others, Period(lease.period.start, last))
            for hold in lease.reservations[0].amounts
        )

    def span(self, hours: tuple[int, int]) -> Period:
        start = self.clock.time + timedelta(hours=hours[0])
        return Period(start, start + timedelta(hours=hours[1]))

    def step(self, verb: str, which: Any, what: Any) -> None:
        pending = [lease for lease in self.known if not lease.touched]
        if verb == "wait":
            self.clock.forward(hours=which)
            run_due(self.climate)
        elif verb == "book":
            asked = asked_for(what)
            fits = self.fits(asked, self.span(which))
            check(fits, lambda: make(self.climate, self.clock, asked, start=which[0], hours=which[1]))
        elif verb in ("grow", "prolong"):
            active = [lease for lease in self.known if lease.status is LeaseStatus.ACTIVE]
            if active:
                getattr(self, verb)(active[which % len(active)], what)
        elif verb == "clear":
            self.clear(which)
        elif pending:
            getattr(self, verb)(pending[which % len(pending)], what)

    def drop(self, lease: Lease, _: None) -> None:
        leases.delete(self.climate, MEMBER, lease.id)

    def move(self, lease: Lease, what: tuple[int, int]) -> None:
        period = self.span(what)
        dates = Changes(start=period.start, end=period.end)
        fits = self.fits(dict(lease.reservations[0].spec), period, lease)
        check(fits, lambda: update.update(self.climate, MEMBER, lease.id, dates))

    def grow(self, lease: Lease, size: int) -> None:
        """Volumes that are in use never shrink, and stay in their pools."""
        spec = lease.reservations[0].spec
        wanted = size * spec["volumes"]
        if wanted >= spec["size_gb"]:
            there = self.fits_in_place(lease, wanted, lease.period.end)
            check(there, lambda: change(self.climate, lease, size_gb=wanted))
            run_due(self.climate)

    def prolong(self, lease: Lease, hours: int) -> None:
        end = lease.period.end + timedelta(hours=hours)
        there = self.fits_in_place(lease, lease.reservations[0].spec["size_gb"], end)
        check(there, lambda: update.update(self.climate, MEMBER, lease.id, Changes(end=end)))

    def clear(self, which: int) -> None:
        """An owner deletes a volume that was kept: its room is there again."""
        made = self.cloud.made_volumes
        kept = [key for key, volume in made.items() if volume.kept]
        if kept:
            gone = made.pop(kept[which % len(kept)])
            before = kept_gb(self.known, gone.pool)
            kept_volumes.release(self.climate)
            assert kept_gb(all_leases(self.climate), gone.pool) == before - gone.size_gb

    def alter(self, lease: Lease, what: tuple[int, int, str]) -> None:
        asked = asked_for(what)
        wanted = {key: asked[key] for key in ("size_gb", "volumes", "on_end")}
        check(self.fits(asked, lease.period, lease), lambda: change(self.climate, lease, **wanted))


def kept_gb(known: list[Lease], pool_name: str) -> int:
    """GB that count of the reservation with that id."""
    return sum(
        hold.amount for lease in known if pool_name == str(lease.reservations[0].id) for hold in counted([lease])
    )


def made_gb(cloud: FakeCloud, lease: Lease) -> int:
    """GB of the volumes that a lease has."""
    return sum(one.size_gb for one in cloud.made_volumes.values() if one.pool == str(lease.reservations[0].id))


def asked_gb(lease: Lease) -> int:
    return int(lease.reservations[0].spec["size_gb"])


def check(fits: bool, act: Callable[[], object]) -> None:
    """What fits is granted, and what does not is refused."""
    if fits:
        act()
        return
    with pytest.raises(NotEnoughStorage):
        act()


@pytest.mark.timeout(300)
@settings(max_examples=length(8, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=steps)
def test_against_a_calendar(climate: Climate, clock: Clock, cloud: FakeCloud, plan: list[tuple[str, Any, Any]]) -> None:
    tag = len(storage_pools.listed(climate, ADMIN))
    for one in storage_pools.listed(climate, ADMIN):
        if not one.closed:
            storage_pools.change(climate, ADMIN, str(one.id), {"closed": True})
    for lease in all_leases(climate):
        leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    cloud.made_volumes.clear()  # the volumes that earlier plans kept: their leases are no longer listed
    kept_volumes.release(climate)
    for capacity in (5, 4):
        pool(climate, capacity, f"p{tag}-{capacity}")
    for step in plan:
        Play(climate, clock).step(*step)
        known = all_leases(climate)
        assert overruns(climate, known) == []
        assert overfull(cloud, storage_pools.listed(climate, ADMIN)) == []
        assert misplaced(cloud, known) == []
        assert all(made_gb(cloud, lease) == asked_gb(lease) for lease in known if lease.status is LeaseStatus.ACTIVE)
    assert consistency_check.differences(climate) == []
