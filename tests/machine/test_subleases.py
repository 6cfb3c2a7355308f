"""Sub-leases under whatever happens to hosts, owners and the clock: no host is promised twice, and all return."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from climate.cloud import Refused
from climate.domain.errors import ClimateError
from climate.domain.events import event_transitions
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.lease import Lease
from climate.domain.sharing import sublease
from climate.domain.status import IN_PROGRESS, UNDONE, EventKind, LeaseStatus
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.subleases import create
from climate.service.subleases import round as subleases
from climate.service.subleases.create import SubleaseOrder
from climate.store.engine import connect
from tests.conftest import ADMIN, MEMBER, STRANGER
from tests.machine.search import look
from tests.machine.test_host_care import MINUTES, NOBODY, NUMBERS, ROUNDS, Care
from tests.machine.world import HOSTS, World


class Sublets(Care):
    """Care, with owners who give hosts to another project and change their minds."""

    known = Care.known

    @rule(
        target=known,
        which=st.integers(0, 3),
        start=st.sampled_from([0, 0, 5, 30]),
        length=st.sampled_from([5, 20, 60]),
        count=st.integers(1, 2),
        on_end=st.sampled_from(["terminate", "recycle"]),
    )
    def give(self, which: int, start: int, length: int, count: int, on_end: str) -> object:
        return self._give(which, start, length, count, on_end)

    @initialize(target=known, count=st.integers(1, 2))
    def somebody_gives_hosts(self, count: int) -> object:
        self.ask_for_hosts(0, 90, 2, "terminate")
        return self._give(0, 5, 20, count, "terminate")

    @rule(target=known, which=st.integers(0, 3), count=st.integers(1, 2))
    def give_at_once(self, which: int, count: int) -> object:
        return self._give(which, 0, 20, count, "terminate")

    def _give(self, which: int, start: int, length: int, count: int, on_end: str) -> object:
        parents = [one for one in self.world.leases() if not one.parent and not event_transitions.is_over(one)]
        if not parents:
            return NOBODY
        lease = parents[which % len(parents)]
        begin = max(self._now() + timedelta(minutes=start), lease.period.start)
        order = SubleaseOrder(
            "s",
            STRANGER.project_id,
            min(begin + timedelta(minutes=length), lease.period.end),
            start=None if begin == self._now() else begin,
            hosts=count,
            terms={"on_end": on_end},
        )
        before = self.world.fingerprint()
        try:
            return create.create(self.climate, MEMBER, lease.id, order).id
        except ClimateError:
            assert self.world.fingerprint() == before
            return NOBODY

    @rule(lease=known)
    def give_back(self, lease: object) -> None:
        self._try(lambda: leases.delete(self.climate, STRANGER, lease))  # type: ignore[arg-type]

    @rule(lease=known, minutes=MINUTES, caller=st.sampled_from([MEMBER, STRANGER]))
    def move_an_end(self, lease: object, minutes: int, caller: object) -> None:
        wanted = Changes(end=self._now() + timedelta(minutes=minutes))
        self._try(lambda: update.update(self.climate, caller, lease, wanted))  # type: ignore[arg-type]

    @rule(lease=known)
    def end_now(self, lease: object) -> None:
        self._try(lambda: update.update(self.climate, MEMBER, lease, Changes(end_now=True)))  # type: ignore[arg-type]

    @rule(host=NUMBERS)
    def boot_as_receiver(self, host: int) -> None:
        place = self._place(host)
        if place.pool is not Pool.LENT:
            return
        try:
            self.cloud.boot(STRANGER.project_id, HOSTS[host - 1])
        except Refused:
            return
        owner = next(one for one in self.world.leases() if any(r.id == place.reservation_id for r in one.reservations))
        assert owner.project_id == STRANGER.project_id, "booted on a host that another lease has"

    def _lacks_what_it_says(self, lease: Lease, there: dict[int, HostPlace]) -> None:
        """A parent has its hosts, or says how many it lacks; those in sub-leases are not missing."""
        going_on = all(event.status is UNDONE for event in lease.events if event.kind is EventKind.END)
        if lease.status is not LeaseStatus.ACTIVE or not going_on or lease.period.end <= self._now():
            return
        if any(event.status in (UNDONE, IN_PROGRESS) for event in lease.events if event.kind is EventKind.ADJUST):
            return
        for r in lease.reservations:
            own = [host for host in r.hosts if there[host].pool is Pool.LENT and there[host].reservation_id == r.id]
            count = len(own) + r.missing + sublease.count_taken(r.sublets)
            assert count == r.spec["min"] or (r.sublets and count > r.spec["min"]), (r, own)

    def _come_to_rest(self) -> None:
        for _ in range(3):
            self.world.run_all()
            for one in (*ROUNDS, subleases.run_round):
                one(self.climate)
        self.world.run_all()
        for lease in self.world.leases():
            assert not (event_transitions.is_over(lease) and lease.owes_hosts and self._is_quiet(lease)), (
                f"{lease} has not returned its hosts"
            )

    def _is_quiet(self, lease: Lease) -> bool:
        """Whether no event of the parent is under way, which delays the return."""
        assert lease.parent is not None
        parents = [one for one in self.world.leases() if one.id == lease.parent.lease_id]
        return not any(event.status is IN_PROGRESS for one in parents for event in one.events)


@pytest.fixture
def sublets(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Sublets]]:
    engine = connect(make_database(engine_template), pool_size=5)
    world = World(engine)
    from climate.service.hosts import inventory

    for name in HOSTS:
        inventory.register(world.climate, ADMIN, name, {})

    class Bound(Sublets):
        pass

    Bound.engine = engine
    yield Bound
    engine.dispose()


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise(sublets: type[Sublets]) -> None:
    look(sublets, examples=5, steps=25)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_in_a_long_search(sublets: type[Sublets]) -> None:
    look(sublets, examples=30, steps=40)
