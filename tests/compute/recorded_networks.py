"""A cloud whose nodes are hosts with networks that are written down, and whose workers can be killed at any step."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import text

from climate.compute import Compute
from climate.compute.models.server import Server
from climate.compute.network.driver import Plug
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.servers import actions
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest, State, Wiring
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import Place, node, place


class Died(BaseException):
    """The worker is killed."""


@dataclass
class Steps:
    """What drivers were asked, in order; the worker dies at the call of number `dies`, before it is done."""

    asked: list[str] = field(default_factory=list)
    dies: int | None = None

    def note(self, verb: str) -> None:
        if self.dies == len(self.asked):
            self.dies = None
            raise Died
        self.asked.append(verb)


@dataclass
class Noting(MemoryDriver):
    """Tells its verbs as they come, and finds what a test says."""

    steps: Steps = field(default_factory=Steps)
    told: bool = False
    seen: dict[str, Guest] = field(default_factory=dict)

    def knows_guests(self, node: str) -> bool:
        return self.told

    def states(self) -> dict[str, State]:
        return dict(self.guests) if self.told else {}

    def delete(self, server_id: str) -> None:
        self.steps.note("delete")
        super().delete(server_id)

    def snapshot(self, guest: Guest, target: Path) -> None:
        self.steps.note("snapshot")
        super().snapshot(guest, target)

    def rewire(self, guest: Guest) -> None:
        self.steps.note("rewire")
        self.seen[guest.id] = guest

    def _set(self, verb: str, guest: Guest, state: State) -> None:
        self.steps.note(verb)
        self.seen[guest.id] = guest
        super()._set(verb, guest, state)


@dataclass
class Wired:
    """A cloud of two nodes, each a host of its own whose network is written down."""

    here: Place
    steps: Steps

    @property
    def compute(self) -> Compute:
        return self.here.compute

    def net(self, host: str) -> RecordingNetwork:
        found = self.compute.network_drivers.on(host)
        assert isinstance(found, RecordingNetwork)
        return found

    def plugs(self) -> list[tuple[str, Plug]]:
        return [(host, plug) for host in ("c1", "c2") for plug in self.net(host).plugs.values()]

    def plug(self) -> Plug:
        """The only one there is."""
        ((_, found),) = self.plugs()
        return found

    def ask(self, server: Server, task: str) -> list[str]:
        """What is asked of the drivers for a task."""
        self.steps.asked.clear()
        actions.request_task(self.compute, server.id, task)
        return self.settle()

    def settle(self) -> list[str]:
        self.here.settle()
        return [verb for verb in self.steps.asked if verb not in ("ensure", "standing", "remove_unused")]

    def restarted(self, server_id: str) -> None:
        """Another worker takes over what a dead one had claimed."""
        with self.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET worker = NULL, worker_until = NULL"))
        task_worker.run_task(self.compute, server_id)
        self.here.rings.rung.clear()


@contextmanager
def wired_place(database: str, home: Path) -> Iterator[Wired]:
    """Two nodes, n1 on host c1 and n2 on host c2."""
    steps = Steps()
    specs = [node("n1", netns="c1"), node("n2", netns="c2")]
    driver = Noting(specs, wiring_mode=Wiring.NETNS, steps=steps)
    with place(database, home, specs, driver) as here:
        made = Wired(here, steps)
        for host in ("c1", "c2"):
            made.net(host).fails = partial(_alone, made)
        yield made


def _alone(wired: Wired, verb: str) -> None:
    assert wired.compute.engine.pool.checkedout() == 0, "a transaction is open while the network is worked on"
    wired.steps.note(verb)
