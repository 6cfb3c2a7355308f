"""Storage against a calendar kept by hand: nothing beyond what pools have, nothing refused that fits.

Leases are booked, moved, changed, ended and given up at random over two pools.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climate.context import Climate
from climate.domain.errors import NotEnoughStorage
from climate.domain.facts import FOREVER, AmountHold
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import HoldState
from climate.service import changes, leases, replay, storage
from climate.service.changes import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.acts import make, run_due
from tests.service.rooms import all_leases, change
from tests.service.volumes import overruns, pool, promised, storage_wanted

spans = st.tuples(st.integers(1, 5), st.integers(1, 3))
wishes = st.tuples(
    st.sampled_from([4, 3, 5, 2]), st.sampled_from([1, 1, 2]), st.sampled_from(["delete", "delete", "delete", "keep"])
)
book = st.tuples(st.just("book"), spans, wishes)
move = st.tuples(st.just("move"), st.integers(0, 9), spans)
alter = st.tuples(st.just("alter"), st.integers(0, 9), wishes)
drop = st.tuples(st.just("drop"), st.integers(0, 9), st.none())
wait = st.tuples(st.just("wait"), st.integers(1, 3), st.none())
steps = st.lists(st.one_of(book, book, book, book, move, alter, drop, wait), min_size=6, max_size=16)


def asked_for(wish: tuple[int, int, str]) -> dict[str, Any]:
    size, volumes, on_end = wish
    return storage_wanted(size * volumes, volumes=volumes, on_end=on_end)


class Play:
    """Does each step, and knows beforehand whether it fits."""

    def __init__(self, climate: Climate, clock: Clock) -> None:
        self.climate, self.clock = climate, clock
        self.known = all_leases(climate)

    def fits(self, asked: dict[str, Any], period: Period, without: Lease | None = None) -> bool:
        """Whether it can be had, by trying every instant at which anything begins in every pool."""
        holds = [hold for lease in self.known if without is None or lease.id != without.id for hold in held(lease)]
        end = FOREVER if asked["on_end"] == "keep" else period.end
        begins = {period.start, *(h.during.start for h in holds if period.start < h.during.start < end)}
        size, count = asked["size_gb"] // asked["volumes"], 0
        for one in (one for one in storage.listed(self.climate, ADMIN) if not one.closed):
            count += (one.total - max(promised(holds, one.number, moment) for moment in begins)) // size
        return count >= asked["volumes"]

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
        elif pending:
            getattr(self, verb)(pending[which % len(pending)], what)

    def drop(self, lease: Lease, _: None) -> None:
        leases.delete(self.climate, MEMBER, lease.id)

    def move(self, lease: Lease, what: tuple[int, int]) -> None:
        period = self.span(what)
        dates = Changes(start=period.start, end=period.end)
        fits = self.fits(dict(lease.reservations[0].spec), period, lease)
        check(fits, lambda: changes.update(self.climate, MEMBER, lease.id, dates))

    def alter(self, lease: Lease, what: tuple[int, int, str]) -> None:
        asked = asked_for(what)
        wanted = {key: asked[key] for key in ("size_gb", "volumes", "on_end")}
        check(self.fits(asked, lease.period, lease), lambda: change(self.climate, lease, **wanted))


def held(lease: Lease) -> list[AmountHold]:
    """What counts of a lease."""
    own = [(r, hold) for r in lease.reservations for hold in r.amounts]
    return [hold for r, hold in own if lease.state_of(r, hold) is not HoldState.RELEASED]


def check(fits: bool, act: Callable[[], object]) -> None:
    """What fits is granted, and what does not is refused."""
    if fits:
        act()
        return
    with pytest.raises(NotEnoughStorage):
        act()


@pytest.mark.timeout(300)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=steps)
def test_against_a_calendar(climate: Climate, clock: Clock, plan: list[tuple[str, Any, Any]]) -> None:
    tag = len(storage.listed(climate, ADMIN))
    for one in storage.listed(climate, ADMIN):  # what earlier plans keep stays where it is
        if not one.closed:
            storage.change(climate, ADMIN, str(one.id), {"closed": True})
    for lease in all_leases(climate):
        leases.delete(climate, MEMBER, lease.id)
    for capacity in (5, 4):
        pool(climate, capacity, f"p{tag}-{capacity}")
    for step in plan:
        Play(climate, clock).step(*step)
        assert overruns(climate, all_leases(climate)) == []
    assert replay.differences(climate) == []
