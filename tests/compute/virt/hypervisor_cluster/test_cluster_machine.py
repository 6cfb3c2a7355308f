"""Whatever happens to a cluster: no server runs twice, and no member promises more than it has."""

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from climate.compute.errors import VirtError
from climate.compute.virt import Guest, State
from tests.campaign import length
from tests.compute.virt.hypervisor_cluster.live_machines import Dies, Host, Strikes
from tests.compute.virt.hypervisor_cluster.machines import Lab

FAR, NEAR = ("m1", "m2", "m3"), ("a", "b", "c3")
SHARED = FAR[:2]
"""Members that may find each other's disks."""
BREAKS = ("run", "prepare", "stop")


class ClusterMachine(RuleBasedStateMachine):
    """Servers come and go, members fail, return, grow and leave, and workers die in the middle of it."""

    guests = Bundle("guests")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.strikes, self.others = Strikes(), dict[str, Host]()
        local = self._machine("local")
        self.lab = Lab(Path(self.folder.name), local=local, make=self._machine)
        for name in NEAR[:2]:
            self.lab.member(name)
        for name in FAR:
            self.lab.member(name, here=False)
        self.known: dict[str, Guest] = {}
        self.disks: dict[str, str] = {}
        """Servers on members that share their disks, and what their disks were at first."""
        self.half_deleted: set[str] = set()

    def _machine(self, name: str) -> Host:
        self.others[name] = Host(name=name, strikes=self.strikes, others=self.others)
        return self.others[name]

    @initialize(shared=st.booleans())
    def storage(self, shared: bool) -> None:
        if shared:
            self.lab.share(*SHARED)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(target=guests, ram_mb=st.sampled_from([512, 1024, 2048, 4096]), prepared=st.booleans())
    def make(self, ram_mb: int, prepared: bool) -> object:
        guest = self.lab.guest(ram_mb)
        try:
            self.lab.driver.prepare(guest) if prepared else self.lab.driver.run(guest)
        except VirtError:
            assert self.lab.copies(guest) == []
            with suppress(VirtError):
                self.lab.driver.delete(guest.id)
            return multiple()
        self.known[guest.id] = guest
        return guest

    @rule(guest=guests, verb=st.sampled_from(["run", "stop", "pause", "unpause", "prepare"]))
    def work(self, guest: Guest, verb: str) -> None:
        if verb == "prepare" and self.lab.copies(guest):
            return
        with suppress(VirtError):
            getattr(self.lab.driver, verb)(guest)

    @rule(guest=guests, ram_mb=st.sampled_from([512, 2048, 4096]))
    def resize(self, guest: Guest, ram_mb: int) -> None:
        with suppress(VirtError):
            self.lab.driver.stop(guest)
            self.lab.driver.run(replace(guest, ram_mb=ram_mb))

    @rule(guest=consumes(guests))
    def delete(self, guest: Guest) -> None:
        try:
            self.lab.driver.delete(guest.id)
        except VirtError:
            self.half_deleted.add(guest.id)
            return
        self.known.pop(guest.id)
        assert self.lab.where(guest) is None

    @rule(name=st.sampled_from(FAR), up=st.booleans(), can_fence=st.booleans())
    def fail_or_return(self, name: str, up: bool, can_fence: bool) -> None:
        member = self.lab.machines[name]
        member.driver.up, member.can_fence = up, can_fence

    @rule(name=st.sampled_from(NEAR), maintenance=st.booleans(), memory_mb=st.sampled_from([4096, 8192]))
    def join(self, name: str, maintenance: bool, memory_mb: int) -> None:
        if memory_mb >= self.lab.here.get(name, replace(self.lab.machines["m1"].spec, memory_mb=0)).memory_mb:
            self.lab.member(name, memory_mb)
            self.lab.here[name] = replace(self.lab.here[name], maintenance=maintenance)

    @rule(name=st.sampled_from(NEAR))
    def leave(self, name: str) -> None:
        if len(self.lab.here) > 1:
            self.lab.here.pop(name, None)

    @rule()
    def tend(self) -> None:
        self.lab.driver.clean_up()

    @rule(name=st.sampled_from(FAR), verb=st.sampled_from(BREAKS))
    def tend_and_die(self, name: str, verb: str) -> None:
        self.lab.machines[name].driver.broken_off = verb
        with suppress(KeyboardInterrupt):
            self.lab.driver.clean_up()
        self.lab.machines[name].driver.broken_off = None

    @rule(
        good=st.integers(0, 4),
        end=st.sampled_from([Dies, VirtError]),
        late=st.booleans(),
        far=st.sampled_from(FAR),
    )
    def move_live_and_fail(self, good: int, end: type[BaseException], late: bool, far: str) -> None:
        """A member is in maintenance for a round that ends at any verb of a live migration."""
        member = self.lab.machines[far]
        member.spec = replace(member.spec, maintenance=True)
        self.strikes.ahead = [(None, False)] * good + [(end, late)]
        with suppress(Dies):
            self.lab.driver.clean_up()
        self.strikes.ahead.clear()
        member.spec = replace(member.spec, maintenance=False)

    @invariant()
    def no_server_runs_twice(self) -> None:
        assert [one for one in self.known.values() if len(self.lab.copies(one)) > 1] == []

    @invariant()
    def no_disk_that_is_shared_is_lost(self) -> None:
        ledger, common = self.lab.driver._clusters()[0].placements, self.lab.machines[SHARED[0]].driver.disks
        entries = ledger.entries() if self.lab.machines[SHARED[0]].disks else {}
        for server_id in {*self.known} - self.half_deleted:
            entry = entries.get(server_id)
            if entry is None or entry.state is State.PREPARED or entry.place.member not in SHARED:
                self.disks.pop(server_id, None)
            elif server_id in common or server_id in self.disks:
                assert common.get(server_id) == self.disks.setdefault(server_id, common.get(server_id, ""))

    @invariant()
    def no_member_promises_more_than_it_has(self) -> None:
        cluster = self.lab.driver._clusters()[0]
        entries = cluster.placements.entries()
        rooms = cluster.rooms(entries)
        assert [room for room in rooms if not room.most.holds(room.taken)] == []
        node = self.lab.node
        there = {room.member for room in rooms}
        promised = sum(one.size.ram_mb for one in entries.values() if one.place.member in there)
        assert promised <= node.memory_mb

    @invariant()
    def what_runs_is_known_to_run(self) -> None:
        states = self.lab.driver.states()
        for guest in self.known.values():
            machines = {one: self.lab.machines[one].driver.up for one in self.lab.copies(guest) if one in FAR}
            if all(machines.values()) and self.lab.copies(guest):
                assert states.get(guest.id) in (State.RUNNING, State.PAUSED), "a server runs that is taken for dead"


ClusterMachine.TestCase.settings = settings(max_examples=length(5, 20), stateful_step_count=30, deadline=None)
test_a_cluster = ClusterMachine.TestCase
