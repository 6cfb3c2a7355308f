"""Hosts that fail, are worked on and come back, under leases that come and go: no order of events breaks a promise."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)
from sqlalchemy import Engine, text

from climate.cloud import Refused
from climate.domain.errors import ClimateError
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.lease import Lease
from climate.domain.status import IN_PROGRESS, UNDONE, EventKind, HoldState, LeaseStatus
from climate.service.host_operations import cleaning, failures, maintenance, recycling
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.leases import healing, host_replacement, leases
from climate.service.leases.leases import LeaseRequest
from climate.store.engine import connect
from climate.store.hosts import pool_membership
from climate.store.hosts.maintenance import Window, WindowFilter
from tests.conftest import ADMIN, MEMBER
from tests.machine.invariants import OVERLAPS
from tests.machine.search import look
from tests.machine.world import HOSTS, World, empty

NUMBERS = st.integers(1, len(HOSTS))
MINUTES = st.sampled_from([1, 5, 10, 30, 60, 90])
NOBODY = UUID(int=0)
"""The id of what was refused: what can be drawn next is not to depend on it, for ids are made by chance and decide."""

ROUNDS = (
    reconcile.correct,
    maintenance.run_round,
    failures.check,
    healing.heal_all,
    recycling.run_round,
    cleaning.run_round,
)


class Care(RuleBasedStateMachine):
    """Owners, an admin, hosts that break and the clock.  Between two rules the rounds come to rest."""

    engine: Engine

    known, windows = Bundle("known"), Bundle("windows")

    def __init__(self) -> None:
        super().__init__()
        empty(self.engine)
        with self.engine.begin() as conn:
            conn.execute(text("UPDATE hosts SET doubted_since = NULL, drift = ''"))
        self.world = World(self.engine)
        self.climate, self.clock, self.cloud = self.world.climate, self.world.clock, self.world.cloud

    @initialize(target=known, count=st.integers(1, len(HOSTS)))
    def somebody_has_hosts(self, count: int) -> object:
        return self.ask_for_hosts(0, 90, count, "terminate")

    @rule(
        target=known,
        start=st.sampled_from([0, 0, 5, 30, 90]),
        length=st.sampled_from([10, 60, 90]),
        count=st.integers(1, len(HOSTS)),
        on_end=st.sampled_from(["terminate", "recycle"]),
    )
    def ask_for_hosts(self, start: int, length: int, count: int, on_end: str) -> object:
        begin = self._now() + timedelta(minutes=start)
        wanted = {"resource_type": "physical:host", "min": count, "max": count, "on_end": on_end}
        order = LeaseRequest("l", begin, begin + timedelta(minutes=length), None, [wanted])
        try:
            return leases.create(self.climate, MEMBER, order).id
        except ClimateError:
            return NOBODY

    @rule(lease=known)
    def delete(self, lease: object) -> None:
        self._try(lambda: leases.delete(self.climate, MEMBER, lease))  # type: ignore[arg-type]

    @rule(host=NUMBERS)
    def boot(self, host: int) -> None:
        """Its owner's server, where the host is lent to him."""
        try:
            self.cloud.boot("project", HOSTS[host - 1])
        except Refused:
            return
        if self._place(host).pool is not Pool.LENT:  # in no pool everybody may boot: that is nobody's business here
            self._empty(host)

    @rule(host=NUMBERS)
    def servers_go(self, host: int) -> None:
        self._empty(host)

    @rule(
        target=windows,
        host=NUMBERS,
        start=st.sampled_from([0, 5, 30]),
        length=st.none() | MINUTES,
        force=st.booleans(),
    )
    def plan(self, host: int, start: int, length: int | None, force: bool) -> object:
        begin = self._now() + timedelta(minutes=start)
        end = begin + timedelta(minutes=length) if length else None
        try:
            order = maintenance.WindowRequest(str(host), begin, end, "work", force)
            return maintenance.plan(self.climate, ADMIN, order).window.id
        except ClimateError:
            return NOBODY

    @rule(window=windows, end=MINUTES, force=st.booleans())
    def move_the_end(self, window: object, end: int, force: bool) -> None:
        changes = maintenance.Changes(end=self._now() + timedelta(minutes=end), force=force)
        self._try(lambda: maintenance.change(self.climate, ADMIN, window, changes))  # type: ignore[arg-type]

    @rule(window=windows)
    def end_the_work(self, window: object) -> None:
        self._try(lambda: maintenance.end(self.climate, ADMIN, window))  # type: ignore[arg-type]

    @rule(host=NUMBERS, patience=st.booleans())
    def break_down(self, host: int, patience: bool) -> None:
        self.cloud.unwell[HOSTS[host - 1]] = "broken"
        if patience:
            failures.check(self.climate)
            self.clock.forward(minutes=1)

    @rule(host=NUMBERS, patience=st.booleans())
    def recover(self, host: int, patience: bool) -> None:
        self.cloud.unwell.pop(HOSTS[host - 1], None)
        if patience:
            failures.check(self.climate)
            self.clock.forward(minutes=1)

    @rule(host=NUMBERS)
    def declare_failed(self, host: int) -> None:
        self._try(lambda: failures.fail(self.climate, ADMIN, str(host), "by hand"))

    @rule(host=NUMBERS)
    def declare_well(self, host: int) -> None:
        self._try(lambda: failures.heal(self.climate, ADMIN, str(host)))

    @rule(lease=known, host=NUMBERS, to=st.none() | NUMBERS, force=st.booleans())
    def reallocate(self, lease: object, host: int, to: int | None, force: bool) -> None:
        order = host_replacement.ReplacementRequest(str(host), lease, None, to and str(to), force)  # type: ignore[arg-type]
        self._try(lambda: host_replacement.reallocate(self.climate, ADMIN, order))

    @rule(minutes=st.sampled_from([1, 5, 30]))
    def time_passes(self, minutes: int) -> None:
        self.clock.forward(minutes=minutes)

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        self._come_to_rest()
        assert consistency_check.differences(self.climate) == []
        with self.engine.connect() as conn:
            assert conn.scalar(text(OVERLAPS)) == 0
        known, open_windows = self.world.leases(), maintenance.listed(self.climate, ADMIN, WindowFilter())
        self._by_brute_force(known, open_windows)
        there = {host: self._place(host) for host in range(1, len(HOSTS) + 1)}
        for lease in known:
            self._lacks_what_it_says(lease, there)
        for host, place in there.items():
            lent_to = place.reservation_id if place.pool is Pool.LENT else None
            assert lent_to is None or any(lent_to == r.id for one in known for r in one.reservations if host in r.hosts)
        pools = self.world.pools()
        assert sorted(name for names in pools.values() for name in names) == sorted(HOSTS)
        for place in there.values():
            assert place.name in pools[reconcile.aggregate_of(place) or ""], place

    def _by_brute_force(self, known: list[Lease], open_windows: list[Window]) -> None:
        taken = [(w.host, w.during) for w in open_windows]
        held = [one for one in known if one.hold_state is not HoldState.RELEASED]
        taken += [(hold.host, hold.during) for one in held for r in one.reservations for hold in r.holds]
        for place, (host, during) in enumerate(taken):
            assert not [1 for other, time in taken[place + 1 :] if other == host and time.overlaps(during)]

    def _lacks_what_it_says(self, lease: Lease, there: dict[int, HostPlace]) -> None:
        """A running lease has all that it was promised, or says how much it lacks."""
        going_on = all(event.status is UNDONE for event in lease.events if event.kind is EventKind.END)
        if lease.status is not LeaseStatus.ACTIVE or not going_on or lease.period.end <= self._now():
            return
        if any(event.status in (UNDONE, IN_PROGRESS) for event in lease.events if event.kind is EventKind.ADJUST):
            return
        for r in lease.reservations:
            own = [host for host in r.hosts if there[host].pool is Pool.LENT and there[host].reservation_id == r.id]
            assert len(own) + r.missing == r.spec["min"], (r, [there[host] for host in r.hosts])

    def teardown(self) -> None:
        """Once everything is well, all work is done and all leases are over, every host is at home."""
        self.cloud.unwell.clear()
        for window in maintenance.listed(self.climate, ADMIN, WindowFilter()):
            maintenance.end(self.climate, ADMIN, window.id)
        for host in range(1, len(HOSTS) + 1):
            self._try(lambda host=host: failures.heal(self.climate, ADMIN, str(host)))  # type: ignore[misc]
        self._come_to_rest()
        for _ in range(4):
            self.clock.forward(minutes=61)
            self._come_to_rest()
        for host in range(1, len(HOSTS) + 1):
            self._empty(host)
        self._come_to_rest()
        for host in range(1, len(HOSTS) + 1):
            assert self._place(host).pool is Pool.RESERVATION, self._place(host)
        for lease in self.world.leases():
            assert lease.gone or lease.status is LeaseStatus.TERMINATED

    def _come_to_rest(self) -> None:
        for _ in range(2):
            self.world.run_all()
            for one in ROUNDS:
                one(self.climate)
        self.world.run_all()

    def _place(self, host: int) -> HostPlace:
        with self.engine.connect() as conn:
            return pool_membership.of(conn, [host])[host]

    def _empty(self, host: int) -> None:
        for server in self.cloud.servers_on(HOSTS[host - 1]):
            self.cloud.delete_server(server.id, 2**60)

    def _now(self) -> datetime:
        return self.clock.time

    def _try(self, verb: Callable[[], object]) -> None:
        try:
            verb()
        except ClimateError:
            return


@pytest.fixture
def care(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Care]]:
    engine = connect(make_database(engine_template), pool_size=5)
    world = World(engine)
    from climate.service.hosts import inventory

    for name in HOSTS:
        inventory.register(world.climate, ADMIN, name, {})

    class Bound(Care):
        pass

    Bound.engine = engine
    yield Bound
    engine.dispose()


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise(care: type[Care]) -> None:
    look(care, examples=5, steps=25)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_in_a_long_search(care: type[Care]) -> None:
    look(care, examples=30, steps=40)
