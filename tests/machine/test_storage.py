"""Leases of storage, alone and beside hosts in one lease, under whatever may happen to the engine."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, multiple, rule

from climate.cloud import CloudError, NotYet, Refused
from climate.cloud.volumes import CloudStorage
from climate.context import Climate
from climate.domain.errors import NotEnoughHosts, NotEnoughStorage
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import HoldState
from climate.service import kept_volumes, storage_pools
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER
from tests.machine.test_engine import MINUTES, Machine, _look
from tests.machine.world import WorkerDied, on_database
from tests.service.storage_factory import counted, fits, misplaced, overfull, overruns, pool, storage_wanted

CAPACITIES = {"small": 4, "large": 7}
KINDS = st.sampled_from(["delete", "delete", "delete", "keep"])
VERBS = st.sampled_from(["ensure_volume", "drop_volumes"])


class Storage(Machine):
    """The same, with two pools of storage."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud.storage = {name: CloudStorage(name, 1000) for name in CAPACITIES}

    @rule(
        target=Machine.known,
        start=st.sampled_from([0, 0, 5, 30]),
        length=MINUTES,
        size=st.integers(1, 4),
        volumes=st.integers(1, 2),
        on_end=KINDS,
    )
    def ask_for_storage(self, start: int, length: int, size: int, volumes: int, on_end: str) -> object:
        wanted = storage_wanted(size * volumes, volumes=volumes, on_end=on_end)
        period = self._period(start, length)
        there = self._fits(wanted, period)
        try:
            lease = self._ask(period, wanted)
        except NotEnoughStorage:
            assert not there, "refused although enough was free"
            return multiple()
        assert there
        assert sum(hold.amount for hold in lease.reservations[0].amounts) == size * volumes
        return lease

    @rule(
        target=Machine.known,
        start=st.sampled_from([0, 0, 5, 30]),
        length=MINUTES,
        least=st.integers(1, 3),
        size=st.integers(1, 4),
        on_end=KINDS,
        first=st.booleans(),
    )
    def ask_for_hosts_and_storage(
        self, start: int, length: int, least: int, size: int, on_end: str, first: bool
    ) -> object:
        disks = storage_wanted(size, on_end=on_end)
        period = self._period(start, length)
        room = self.world.free(period) >= least, self._fits(disks, period)
        parts = [{"resource_type": "physical:host", "min": least, "max": least}, disks]
        try:
            lease = self._ask(period, *(parts if first else parts[::-1]))
        except (NotEnoughHosts, NotEnoughStorage):
            assert not all(room), "refused although enough was free"
            return multiple()
        assert all(room)
        return lease

    @rule(lease=Machine.known, size=st.integers(1, 6))
    def change_size_of_storage(self, lease: Lease, size: int) -> None:
        for r in lease.reservations:
            if r.resource_type == "storage:pool":
                self._change(lease, Changes(reservations=[{"id": str(r.id), "size_gb": size * r.spec["volumes"]}]))

    @rule(verb=VERBS, error=st.sampled_from([None, CloudError("flaky"), Refused("never"), NotYet("soon")]))
    def storage_fails(self, verb: str, error: CloudError | None) -> None:
        self.cloud.failures.pop(verb, None)
        if error:
            self.cloud.failures[verb] = error

    @rule(verb=VERBS)
    def an_answer_of_storage_gets_lost(self, verb: str) -> None:
        self.cloud.unheard[verb] = 1

    @rule(turn=st.integers(0, 5))
    def workers_of_one_type_are_away(self, turn: int) -> None:
        """Only the messages of one queue are read; those of others wait."""
        self.world.queue = self.world.queue or self.world.send()
        queues = sorted({message.queue for message in self.world.queue})
        if queues:
            mine = queues[turn % len(queues)]
            found = [message for message in self.world.queue if message.queue == mine]
            self.world.queue = [message for message in self.world.queue if message.queue != mine]
            for message in found:
                self.world.run(message)

    @rule()
    def die_while_a_volume_is_made(self) -> None:
        watch, deaths = self.cloud.watch, iter([True])

        def look(verb: str) -> None:
            if watch:
                watch(verb)
            if verb in ("ensure_volume", "drop_volumes") and next(deaths, False):
                raise WorkerDied

        self.cloud.watch = look
        try:
            self.world.queue += self.world.send()
            while self.world.queue:
                self.world.run(self.world.queue.pop(0))
        finally:
            self.cloud.watch = watch

    @rule()
    def owners_delete_what_they_kept(self) -> None:
        kept = [key for key, volume in self.cloud.made_volumes.items() if volume.kept]
        for key in kept[:1]:
            del self.cloud.made_volumes[key]
        if not self.cloud.broken:
            kept_volumes.release(self.climate)

    @invariant()
    def no_pool_is_promised_beyond_its_size(self) -> None:
        assert overruns(self.climate, self.world.leases()) == []

    @invariant()
    def volumes_are_those_of_leases_or_kept(self) -> None:
        assert overfull(self.cloud, storage_pools.listed(self.climate, ADMIN)) == []
        assert misplaced(self.cloud, self.world.leases()) == []

    def teardown(self) -> None:
        super().teardown()
        left = {volume.pool for volume in self.cloud.made_volumes.values() if not volume.kept}
        assert left == set(), "volumes of leases that are over"
        kept_volumes.release(self.climate)
        held = {
            str(r.id): sum(hold.amount for hold in r.amounts)
            for lease in self.world.leases()
            for r in lease.reservations
            if [hold for hold in r.amounts if lease.state_of(r, hold) is not HoldState.RELEASED]
        }
        made: dict[str, int] = {}
        for volume in self.cloud.made_volumes.values():
            made[volume.pool] = made.get(volume.pool, 0) + volume.size_gb
        assert held == made, "what counts still is what is there still"

    def _period(self, start: int, length: int) -> Period:
        begin = self._now() + timedelta(minutes=start)
        return Period(begin, begin + timedelta(minutes=length))

    def _ask(self, period: Period, *wanted: dict[str, Any]) -> Lease:
        order = LeaseRequest("s", period.start, period.end, None, list(wanted))
        return self._or_nothing(lambda: leases.create(self.climate, MEMBER, order))

    def _fits(self, wanted: dict[str, Any], period: Period) -> bool:
        return fits(storage_pools.listed(self.climate, ADMIN), counted(self.world.leases()), wanted, period)


def _pools(climate: Climate) -> None:
    for name, capacity in CAPACITIES.items():
        pool(climate, capacity, name)


@pytest.fixture(scope="module")
def machine(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Storage]]:
    with on_database(Storage, make_database(engine_template), _pools) as one:
        yield one


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise_of_storage(machine: type[Storage]) -> None:
    _look(machine, examples=6, steps=40)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_of_storage_in_a_long_search(machine: type[Storage]) -> None:
    _look(machine, examples=80, steps=50)
