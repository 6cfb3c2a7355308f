"""Servers that move, clusters whose members fail, storage and leases of hosts, all at once and in any order."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Engine

from climate.compute import Compute
from climate.compute.errors import ComputeError, VirtError
from climate.compute.migrations import cold_migration, evacuation, live_migration_requests
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    PAUSE,
    PAUSED,
    REVERT,
    SHUTOFF,
    START,
    STOP,
    UNPAUSE,
    VERIFY_RESIZE,
    Server,
)
from climate.compute.servers import actions, resize, volume_attachments
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.virt import State
from climate.domain.errors import ClimateError
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.events import event_dispatch, events
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes, update
from climate.store.engine import connect
from climate.store.leases import leases as lease_rows
from tests.compute.cloud_factory import HALF, TINY
from tests.conftest import ADMIN, MEMBER
from tests.machine.invariants import OVERLAPS, UNCLAIMED, count
from tests.machine.move_rules import FAR, NEAR, RESERVABLE, SIDE, SUM, Dies, Moving, member, registered
from tests.machine.search import look
from tests.service.lease_actions import listed_events
from tests.service.storage_factory import overruns, pool, storage_wanted

BY = {"project_id": "project", "user_id": "user", "request_id": "req-1"}
MOST_SERVERS = 5
BACKEND, CAPACITY = "local", 4
SPARE = "spare"
WHICH = st.integers(0, MOST_SERVERS - 1)

ASKED: Mapping[str, Callable[[Compute, str], object]] = {
    **{
        task: lambda compute, one, task=task: actions.request_task(compute, one, task)
        for task in (STOP, START, PAUSE, UNPAUSE)
    },
    "migrate": cold_migration.migrate,
    "migrate live": lambda compute, one: live_migration_requests.live_migrate(compute, one, by=BY),
    "evacuate": evacuation.evacuate,
    "confirm": resize.confirm,
    "revert": lambda compute, one: actions.request_task(compute, one, REVERT),
}
"""What is asked of servers."""

GUESTS: Mapping[str, frozenset[State | None]] = {
    ACTIVE: frozenset({State.RUNNING}),
    PAUSED: frozenset({State.PAUSED}),
    SHUTOFF: frozenset({None, State.DEAD, State.PREPARED}),
}
"""Status of a server that nothing is under way for -> what its guest may be."""

LEFT = """
    SELECT reservation_id FROM allocations WHERE state <> 'released'
    UNION ALL SELECT reservation_id FROM inventory_allocations WHERE state <> 'released'
"""


class Moves(RuleBasedStateMachine):
    """Owners, operators, machines and workers, each doing what they please."""

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = Moving(self.engine, Path(self.folder.name))
        self.leases: list[UUID] = []

    @initialize(shared=st.sampled_from([True, False]), failing=st.sampled_from([*FAR, None]))
    def begin(self, shared: bool, failing: str | None) -> None:
        """Members of the cluster find each other's disks, or not; there are servers, and a member fails at once."""
        if shared:
            common = self.world.members[FAR[0]].driver.disks
            for one in self.world.members.values():
                one.driver.disks, one.disks = common, "shared"
        self.ask_for_hosts_and_storage(start=0, length=60, least=2, size=1)
        self.boot(large=False, leased=True, count=3)
        self.boot(large=True, leased=False, count=2)
        self.attach_a_volume(which=0)
        if failing:
            self.a_member_fails_and_its_servers_are_restarted(name=failing)

    # Owners.

    @rule(
        start=st.sampled_from([0, 0, 5]),
        length=st.sampled_from([5, 30, 60]),
        least=st.sampled_from([0, 1, 1, 2]),
        size=st.sampled_from([0, 1, 3]),
    )
    def ask_for_hosts_and_storage(self, start: int, length: int, least: int, size: int) -> None:
        begin = self.world.clock.time + timedelta(minutes=start)
        part = {"resource_type": "physical:host", "min": least, "max": least}
        wanted = [*([part] if least else []), *([storage_wanted(size, on_end="delete")] if size else [])]
        order = LeaseRequest("l", begin, begin + timedelta(minutes=length), None, wanted)
        with suppress(ClimateError):
            self.leases.append(leases.create(self.world.climate, MEMBER, order).id)
            self.world.run_events()

    @rule(which=WHICH)
    def end_a_lease(self, which: int) -> None:
        for lease in self.leases[which : which + 1]:
            with suppress(ClimateError):
                update(self.world.climate, MEMBER, lease, Changes(end_now=True))
            self.world.run_events()

    @rule(large=st.booleans(), leased=st.booleans(), count=st.integers(1, 2))
    def boot(self, large: bool, leased: bool, count: int) -> None:
        """Boot servers, of a lease where there is one that has hosts."""
        if len(self.world.servers()) + count > MOST_SERVERS:
            return
        pools = [str(r.id) for one in self._running() for r in one.reservations if r.hosts] if leased else []
        hints = {"reservation": pools[-1]} if pools else {}
        with suppress(ComputeError):
            flavor = HALF if large else TINY
            made = self.world.here.boot(flavor, project_id="project", user_id="user", hints=hints, count=count)
            self.world.ids += [server.id for server in made]
        self.world.work()

    @rule(which=WHICH)
    def attach_a_volume(self, which: int) -> None:
        volumes = self.world.rows("SELECT id::text FROM compute_volumes ORDER BY id LIMIT 1")
        for server in self._one(which):
            for volume in volumes:
                with suppress(ComputeError):
                    volume_attachments.attach(self.world.here.compute, Requester(server.id, "project", BY), volume[0])
        self.world.work()

    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        self._ask(which, lambda compute, one: actions.request_task(compute, one, DELETE))
        self.world.work()

    # Owners and operators; workers may die or fail at what was asked.

    @rule(
        which=WHICH,
        what=st.sampled_from(sorted(ASKED)),
        good=st.integers(0, 3),
        end=st.sampled_from([None, None, Dies, VirtError]),
        late=st.booleans(),
        waits=st.booleans(),
    )
    def ask_a_server(
        self, which: int, what: str, good: int, end: type[BaseException] | None, late: bool, waits: bool
    ) -> None:
        self._ask(which, ASKED[what])
        if not waits:
            self.world.strikes.ahead = [(None, False)] * good + ([(end, late)] if end else [])
            self.world.work()

    @rule(which=WHICH, live=st.booleans(), back=st.booleans())
    def move_and_settle(self, which: int, live: bool, back: bool) -> None:
        """A move as it should be: confirmed or taken back where it can be."""
        self._ask(which, ASKED["migrate live" if live else "migrate"])
        self.world.finish()
        self._ask(which, ASKED["revert" if back else "confirm"])
        self.world.finish()

    # Machines.

    @rule()
    def a_service_dies_and_its_servers_are_evacuated(self) -> None:
        self.world.service_dies(SIDE)
        for server in self.world.servers():
            if server.service_host == SIDE:
                with suppress(ComputeError):
                    evacuation.evacuate(self.world.here.compute, server.id)
        self.world.work()

    @rule()
    def a_service_dies(self) -> None:
        self.world.service_dies(SIDE)

    @rule()
    def a_service_returns(self) -> None:
        self.world.service_returns(SIDE)
        self.world.tend()

    @rule(name=st.sampled_from(FAR), up=st.booleans(), can_fence=st.sampled_from([True, True, False]))
    def a_member_fails_or_returns(self, name: str, up: bool, can_fence: bool) -> None:
        failing = self.world.members[name]
        failing.driver.up, failing.can_fence = up, can_fence

    @rule(name=st.sampled_from(FAR))
    def a_member_fails_and_its_servers_are_restarted(self, name: str) -> None:
        """Those whose disks another member finds still have them."""
        failing = self.world.members[name]
        disks = dict(failing.driver.disks)
        failing.driver.up, failing.can_fence = False, True
        self.world.tend()
        for server_id in self.world.ids:
            there = [one for one in self.world.copies(server_id) if one in FAR and one != name]
            if failing.disks and there and server_id in disks:
                assert self.world.members[there[0]].driver.disks[server_id] == disks[server_id], "its disk is lost"

    @rule(there=st.booleans())
    def a_member_joins_or_leaves(self, there: bool) -> None:
        self.world.local.pop(SPARE, None)
        if there:
            self.world.local[SPARE] = member(SPARE)
        self.world.beat()

    # Time, pollers, rounds.

    @rule(good=st.integers(0, 2), end=st.sampled_from([None, None, Dies, VirtError]), late=st.booleans())
    def services_tend(self, good: int, end: type[BaseException] | None, late: bool) -> None:
        self.world.strikes.ahead = [(None, False)] * good + ([(end, late)] if end else [])
        self.world.tend()
        self.world.strikes.ahead.clear()

    @rule()
    def open_work_is_done(self) -> None:
        self.world.finish()

    @rule(minutes=st.sampled_from([1, 5, 30]))
    def time_passes(self, minutes: int) -> None:
        self.world.clock.forward(minutes=minutes)
        self.world.beat()
        self.world.run_events()
        self.world.work()

    # What must hold.

    @invariant()
    def no_host_is_promised_twice(self) -> None:
        assert count(self.engine, OVERLAPS) == 0
        assert count(self.engine, UNCLAIMED) == 0
        assert overruns(self.world.climate, self._leases()) == []

    @invariant()
    def rows_are_the_fold_of_the_facts(self) -> None:
        assert consistency_check.differences(self.world.climate) == []

    @invariant()
    def claims_sum_up(self) -> None:
        """What is taken of a node is the sum over its servers and the migrations that hold room there."""
        assert self.world.here.drift() == []
        cluster = self.world.services["compute-1"].driver.members["cluster"]._clusters()[0]  # type: ignore[attr-defined]
        rooms = cluster.rooms()
        assert [room for room in rooms if not room.most.holds(room.taken)] == []

    @invariant()
    def each_server_has_one_owner(self) -> None:
        """It runs once at most, and a node that it is not on has nothing of it but a disk."""
        for server_id in self.world.ids:
            assert len(self.world.copies(server_id)) <= 1, self.world.copies(server_id)

    @invariant()
    def the_cluster_has_the_size_of_its_members(self) -> None:
        self.world.beat()
        there = [one.spec for one in self.world.members.values() if one.driver.up]
        memory = sum(one.memory_mb for one in (*self.world.local.values(), *there))
        assert self.world.rows(f"SELECT memory_mb FROM compute_nodes WHERE name = '{SUM}'") == [(memory,)]

    @invariant()
    def a_volume_has_one_server_of_those_that_there_are(self) -> None:
        lost = "server_id IS NOT NULL AND NOT EXISTS (SELECT FROM compute_servers s WHERE s.id = server_id)"
        assert self.world.rows(f"SELECT id FROM compute_volumes WHERE {lost}") == []

    def teardown(self) -> None:
        try:
            self._heal()
            self._all_servers_are_as_they_should_be()
            self._let_go()
            self._all_is_given_back()
        finally:
            self.world.stack.close()
            self.folder.cleanup()

    def _heal(self) -> None:
        self.world.strikes.ahead.clear()
        self.world.service_returns(SIDE)
        for one in self.world.members.values():
            one.driver.up = one.can_fence = True
        for _ in range(3):
            self.world.finish()
            self.world.tend()
        self.world.finish()

    def _all_servers_are_as_they_should_be(self) -> None:
        rows = {server.id: server for server in self.world.servers()}
        for server in rows.values():
            assert server.task is None
            machines, own = self.world.machines(), self._of_node(server)
            states = {machines[name].guests.get(server.id) for name in own}
            fitting = GUESTS.get(server.status)
            assert server.fault is not None or fitting is None or states & fitting, (server.status, states)
            elsewhere = set(self.world.copies(server.id)) - own
            assert server.status == VERIFY_RESIZE or not elsewhere, (server, elsewhere)
        for name, machine in self.world.machines().items():
            gone = [one for one in machine.guests if one not in rows]
            assert not gone, f"{name} has guests of no server: {gone}"

    def _let_go(self) -> None:
        for server in self.world.servers():
            actions.request_task(self.world.here.compute, server.id, DELETE)
        self.world.finish()
        assert self.world.servers() == []
        for _ in range(60):
            ran = self.world.run_events()
            for lease, event in listed_events(self.world.climate, "ERROR", 100):
                if event.kind == "end_lease":
                    events.requeue(self.world.climate, ADMIN, event.id)
                assert lease.id in self.leases
            self.world.finish()
            if not ran and event_dispatch.next_due(self.world.climate) is None:
                return
            self.world.clock.forward(minutes=10)
            self.world.beat()
        raise AssertionError("the engine does not come to rest")

    def _all_is_given_back(self) -> None:
        for lease in self._leases():
            assert lease.gone or lease.status is LeaseStatus.TERMINATED, lease
        assert self.world.rows(LEFT) == []
        assert self.world.rows("SELECT id FROM compute_volumes") == []
        assert self.world.rows("SELECT id FROM compute_migrations WHERE held_node_id IS NOT NULL") == []
        assert self.world.rows("SELECT name FROM compute_nodes WHERE used_vcpus <> 0") == []
        places = self.world.rows("SELECT hypervisor_hostname, pool FROM hosts ORDER BY id")
        assert places == [(name, Pool.RESERVATION.value) for name in RESERVABLE]
        assert set(self.world.climate.cloud.pools()["freepool"]) == set(RESERVABLE)
        self.world.tend()  # a round deletes the source's copy of a server that was deleted before it was confirmed
        assert {name: one.guests for name, one in self.world.machines().items() if one.guests} == {}

    # Means.

    def _ask(self, which: int, act: Callable[[Compute, str], object]) -> None:
        for server in self._one(which):
            with suppress(ComputeError):
                act(self.world.here.compute, server.id)

    def _one(self, which: int) -> list[Server]:
        """One of the servers that there are, in a list; none where there are none."""
        found = self.world.servers()
        return [found[which % len(found)]] if found else []

    def _leases(self) -> list[Lease]:
        with self.engine.connect() as conn:
            return list(lease_rows.all_of(conn))

    def _running(self) -> list[Lease]:
        return [lease for lease in self._leases() if lease.status is LeaseStatus.ACTIVE]

    def _of_node(self, server: Server) -> set[str]:
        """The machines that a server may be on: those of its node."""
        if server.node == SUM:
            return {NEAR, *FAR}
        return {server.service_host} if server.service_host else set()


@pytest.fixture
def moves(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Moves]]:
    engine = connect(make_database(engine_template), pool_size=5)
    pool(registered(engine), CAPACITY, BACKEND)
    yield type("MovesOnDatabase", (Moves,), {"engine": engine})
    engine.dispose()


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise_about_servers_that_move(moves: type[Moves]) -> None:
    look(moves, examples=6, steps=20)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_about_servers_that_move_in_a_long_search(moves: type[Moves]) -> None:
    look(moves, examples=60, steps=40)
