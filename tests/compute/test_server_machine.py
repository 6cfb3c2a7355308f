"""Whatever is asked of servers, and whichever worker dies: rooms add up, and guests are as their rows say."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.errors import ComputeError, VirtError
from climate.compute.migrations import cold_migration, evacuation
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    PAUSE,
    PAUSED,
    REBOOT,
    REBOOT_HARD,
    RESCUED,
    RESUME,
    REVERT,
    SHELVED_OFFLOADED,
    SHUTOFF,
    START,
    STOP,
    SUSPEND,
    SUSPENDED,
    UNPAUSE,
    UNRESCUE,
    VERIFY_RESIZE,
    Server,
)
from climate.compute.nodes import services
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.servers import actions, properties, rebuild, resize, sync_states, unshelve
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest, State
from climate.compute.virt.in_memory import MemoryDriver
from tests.campaign import cases
from tests.compute.cloud_factory import HALF, SERVICE, TINY, Place, node, place

OTHER = "compute-2"

WISHES = (STOP, START, PAUSE, UNPAUSE, SUSPEND, RESUME, REBOOT, REBOOT_HARD, REVERT, UNRESCUE, DELETE)
SMALL = replace(TINY, id="s", name="small", ram_mb=256, disk_gb=30)
BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}

ASKED: dict[str, Callable[[Compute, str], object]] = {
    **{
        task: partial(lambda wish, compute, server_id: actions.request_task(compute, server_id, wish), task)
        for task in WISHES
    },
    "shelve": actions.shelve,
    "unshelve": unshelve.unshelve,
    "grow": lambda compute, server_id: resize.resize(compute, server_id, HALF),
    "shrink": lambda compute, server_id: resize.resize(compute, server_id, SMALL),
    "confirm": resize.confirm,
    "migrate": cold_migration.migrate,
    "evacuate": evacuation.evacuate,
    "image": lambda compute, server_id: actions.snapshot(compute, server_id, "copy"),
    "rebuild": lambda compute, server_id: rebuild.rebuild(compute, server_id, Rebuilt(IMAGE_ID)),
    "rescue": lambda compute, server_id: rebuild.rescue(compute, server_id, None),
    "reset": lambda compute, server_id: properties.reset(compute, server_id, ERROR, by=BY),
}
"""What may be asked of a server."""

LIKELY = {
    ACTIVE: (
        "shelve",
        "shelve",
        "grow",
        "shrink",
        "migrate",
        "migrate",
        "evacuate",
        "image",
        "rebuild",
        "rescue",
        STOP,
        PAUSE,
        SUSPEND,
        REBOOT,
    ),
    SHUTOFF: ("shelve", "grow", "migrate", "evacuate", "rebuild", "rescue", START),
    PAUSED: ("shelve", UNPAUSE),
    SUSPENDED: ("shelve", RESUME),
    SHELVED_OFFLOADED: ("unshelve", "unshelve", "unshelve", DELETE),
    VERIFY_RESIZE: ("confirm", REVERT, REVERT, "reset"),
    RESCUED: (UNRESCUE, UNRESCUE, "reset"),
    ERROR: (REBOOT_HARD, "rebuild", "rescue", "evacuate", DELETE),
}
"""Status -> what is asked of such a server most of the time; twice what matters most."""

GUESTS = {
    ACTIVE: {State.RUNNING},
    SHUTOFF: {State.DEAD, State.PREPARED, None},
    PAUSED: {State.PAUSED},
    SUSPENDED: {State.SUSPENDED},
    SHELVED_OFFLOADED: {None},
    VERIFY_RESIZE: {State.RUNNING, State.DEAD, State.PREPARED},
    RESCUED: {State.RUNNING},
    ERROR: {None, *State},
}
"""Status of a server for which nothing is under way -> what its guest may be."""


Ends = list[tuple[type[BaseException] | None, bool]]
"""How the next calls of drivers end: by which error, and whether after their effect."""


class Dies(BaseException):
    """The end of a worker, which nothing in it catches."""


class Mortal(MemoryDriver):
    """A driver whose worker dies, or which fails, at some call; before or after that has had its effect."""

    def __init__(self, nodes: list[NodeSpec], ends: Ends) -> None:
        super().__init__(nodes)
        self.ends = ends

    def states(self) -> Mapping[str, State]:
        return dict(self.guests)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("run", "prepare", "stop", "pause", "unpause", "suspend", "resume", "snapshot", "delete"):
            return found
        return lambda *args, **named: self._mortal(lambda: found(*args, **named))

    def snapshot(self, guest: Guest, target: Path) -> None:
        assert guest.id in self.guests, "there is nothing left to be imaged"
        super().snapshot(guest, target)

    def _mortal(self, act: Callable[[], None]) -> None:
        error, late = self.ends.pop(0) if self.ends else (None, False)
        if error is None or late:
            act()
        if error is not None:
            raise error("the end")


class Life:
    """A few servers on two nodes of two services with room for four halves, and workers that may die."""

    def __init__(self, sites: Mapping[str, Place], chance: Random) -> None:
        self.sites = sites
        self.here = sites[SERVICE]
        self.chance = chance
        self.ends_of_drivers: Ends = self.here.driver.ends
        self.ids: list[str] = []

    def step(self) -> None:
        """Ask something of a server, perhaps something else before that is done, and let workers be at it."""
        alive = [server_id for server_id in self.ids if self._look(server_id) is not None]
        if len(alive) < 3:
            with contextlib.suppress(ComputeError):
                self.ids += [server.id for server in self.here.boot(self.chance.choice((TINY, HALF)))]
            self.work([])
            return
        server_id = self.chance.choice(alive[-3:])
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            self._ask(server_id)
        end = (self.chance.choice((Dies, VirtError)), self.chance.random() < 0.5)
        good = [(None, False)] * self.chance.choice((0, 1, 2, 2))
        self.work([*good, *[end] * self.chance.choice((0, 1))])
        if self.chance.random() < 0.7:
            self.finish()
        elif self.chance.random() < 0.5:
            self.tend()

    def _ask(self, server_id: str) -> None:
        server = self._look(server_id)
        likely = LIKELY.get(server.status, ()) if server and self.chance.random() < 0.8 else ()
        wish = self.chance.choice(likely or sorted(ASKED))
        down = server.service_host if server is not None and wish == "evacuate" else None
        self.force_down(down)
        with contextlib.suppress(ComputeError):
            ASKED[wish](self.here.compute, server_id)
        if self.chance.random() < 0.5:
            self.work([], dead=down)
        self.force_down(None)

    def force_down(self, host: str | None) -> None:
        """Say that this service is down, and no other one; None: that none is."""
        with self.here.compute.engine.begin() as conn:
            query = text("UPDATE compute_services SET forced_down = (host IS NOT DISTINCT FROM :host)")
            conn.execute(query, {"host": host})

    def tend(self) -> None:
        """Each service looks after what it has."""
        for site in self.sites.values():
            sync_states.reconcile(site.compute)

    def work(self, ends: Ends, dead: str | None = None) -> None:
        """Workers do what was rung for; some die at it, and what they had claimed is free after a while."""
        self.ends_of_drivers[:] = ends
        while self.here.rings.rung:
            host, server_id = self.here.rings.rung.pop(0)
            with contextlib.suppress(Dies):
                if host in self.sites and host != dead:
                    task_worker.run_task(self.sites[host].compute, server_id)
        self.ends_of_drivers.clear()
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET worker_until = NULL"))

    def finish(self) -> None:
        """In the end everything that was asked is done, and every guest is what its server is."""
        self.work([])
        while found := task_worker.unfinished(self.here.compute, wait=0, again=0):
            for host, server_id in found:
                task_worker.run_task(self.sites[host].compute, server_id)
        self.tend()
        rows = {server.id: server for server in map(self._look, self.ids) if server is not None}
        for server in rows.values():
            assert server.task is None
            if server.fault is None:  # what a driver has left half-done is found and put right by its service
                driver = self.sites[server.service_host or SERVICE].driver
                assert driver.guests.get(server.id) in GUESTS[server.status], server
                assert server.status == ERROR or (server.id in driver.rescued) is (server.status == RESCUED), server
        for host, site in self.sites.items():
            for server_id, state in site.driver.guests.items():
                self._belongs(rows[server_id], host, state)

    def _belongs(self, server: Server, host: str, state: State) -> None:
        """No guest runs but where its server is; elsewhere is only the disk that a server may come back to."""
        if server.service_host != host:
            assert server.status == VERIFY_RESIZE, (server, host)
            assert state in (State.DEAD, State.PREPARED), (server, host)

    def rooms_add_up(self) -> None:
        assert self.here.drift() == []
        full = "used_ram_mb > memory_mb * ram_ratio OR used_vcpus > vcpus * cpu_ratio OR used_disk_mb > local_gb * 1024"
        assert self.here.count("compute_nodes", full) == 0

    def what_is_shelved_has_its_image(self) -> None:
        for server in filter(None, map(self._look, self.ids)):
            assert (server.node_id is None) <= (server.status in (SHELVED_OFFLOADED, ERROR))
            if server.status == SHELVED_OFFLOADED:
                image = f"id = '{server.shelved_image}' AND status = 'active'"
                assert self.here.count("compute_images", image) == 1
                assert (self.here.compute.images / str(server.shelved_image)).exists()

    def _look(self, server_id: str) -> Any:
        with contextlib.suppress(ComputeError):
            return self.here.look(server_id)
        return None


@pytest.fixture
def mortal(scratch: str, tmp_path: Path) -> Iterator[Mapping[str, Place]]:
    """Two services, each with a node and a home of its own; the folder of images is shared."""
    homes, ends = {SERVICE: tmp_path / "one", OTHER: tmp_path / "two"}, Ends()
    (homes[SERVICE] / "images").mkdir(parents=True)
    homes[OTHER].mkdir()
    (homes[OTHER] / "images").symlink_to(homes[SERVICE] / "images")
    drivers = {SERVICE: Mortal([node("n1")], ends), OTHER: Mortal([node("n2")], ends)}
    with place(scratch, homes[SERVICE], [], drivers[SERVICE]) as found:
        second = replace(found.compute, home=homes[OTHER], service_host=OTHER, driver=drivers[OTHER])
        services.refresh(second)
        yield {SERVICE: found, OTHER: Place(second, found.rings, drivers[OTHER])}


@pytest.mark.parametrize("seed", cases(range(8), range(2)))
def test_servers_live_through_everything(mortal: Mapping[str, Place], seed: int) -> None:
    life = Life(mortal, Random(seed))
    for _ in range(40):
        life.step()
        life.rooms_add_up()
        life.what_is_shelved_has_its_image()
    life.finish()
