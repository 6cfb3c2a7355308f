"""Users, workers, services and admins of the bundled cloud at once, each in threads of its own, on one database."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path
from random import Random
from threading import Lock, Thread
from typing import Any

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError

from climate.compute import build
from climate.compute.cells.options import CellOptions
from climate.compute.context import Compute
from climate.compute.errors import ComputeError, NotFound
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import Server
from climate.compute.network import floating_ips
from climate.compute.network.models import FLAT_DHCP
from climate.compute.nodes import services
from climate.compute.servers import actions
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_worker
from climate.compute.store import db_errors
from climate.compute.store.projects import flavors
from climate.compute.store.servers import lists
from climate.compute.store.servers.lists import Listing
from climate.compute.virt import Guest, State
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.zones.options import Zones
from climate.database.connections import reading
from climate.sealed_secrets import Vault
from tests.compute import network_factory
from tests.compute.cloud_factory import DOWN_SECONDS, HALF, TINY, empty, node

SERVICES = {"compute-1": ("n1", "n4", "n7"), "compute-2": ("n2", "n5"), "compute-3": ("n3", "n6")}
"""The nodes of each compute service: in the order of their names, those of one service lie between others'."""

NODES = sorted(name for names in SERVICES.values() for name in names)
PROJECTS = ("demo", "other")
POOLS = ("11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002")
"""Pools of two leases."""

FLAVORS = (TINY, HALF, replace(TINY, id="w", name="wide", vcpus=2))
OUTSIDE = IPv4Network("198.51.100.0/27")


def by(project: str) -> dict[str, str]:
    return {"project_id": project, "user_id": "dora", "request_id": "req-1"}


class Driver(MemoryDriver):
    """A driver that only pretends, and knows its guests again."""

    def knows_guests(self, node: str) -> bool:
        return True

    def states(self) -> dict[str, State]:  # type: ignore[override]
        return dict(self.guests)

    def prepare(self, guest: Guest) -> None:
        super().prepare(guest)
        self.calls.clear()


@dataclass
class Bells:
    """A doorbell that threads share."""

    rung: list[tuple[str, str]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, service_host: str, /, *server_ids: str) -> None:
        with self.lock:
            self.rung += [(service_host, server_id) for server_id in server_ids]

    def next(self) -> tuple[str, str] | None:
        with self.lock:
            return self.rung.pop(0) if self.rung else None


@dataclass
class Load:
    """One cloud under load.  `done` counts what was carried out, `refused` what was not."""

    engine: Engine
    home: Path
    bells: Bells = field(default_factory=Bells)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    deadlocks: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    token: int = 1
    services: dict[str, Compute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        empty(self.engine)
        event.listen(self.engine, "handle_error", self._note)
        for host, names in SERVICES.items():
            self.services[host] = self._service(host, [node(name) for name in names])
            services.refresh(self.services[host])
        with self.engine.begin() as conn:
            network_factory.network(conn, "private", "10.10.0.0/25", FLAT_DHCP)
            network_factory.network(conn, "second", "10.11.0.0/25")
            self.pool = floating_ips.create_pool(conn, "outside", OUTSIDE)
            floating_ips.add(conn, self.pool, OUTSIDE[1], OUTSIDE[-2])
            for flavor in FLAVORS:
                flavors.insert(conn, flavor)
        self.compute = self.services["compute-1"]

    def _service(self, host: str, specs: Sequence[NodeSpec]) -> Compute:
        home = self.home / host
        home.mkdir(exist_ok=True)
        compute = build(self.engine, home=home, service_host=host, cast=self.bells, driver=Driver(specs))
        zones = Zones(seal=lambda text: text[::-1], unseal=lambda text: text[::-1])
        cells = CellOptions(vault=Vault.of_this_process())
        return replace(compute, zones=zones, cells=cells, down_seconds=DOWN_SECONDS)

    def _note(self, context: Any) -> None:
        if isinstance(context.original_exception, DeadlockDetected):
            self.deadlocks.append(f"{context.statement}\n{context.original_exception}")

    def run(self, actors: Sequence[tuple[Sequence["Act"], int]], seconds: float, seed: int = 1) -> None:
        """Let every kind of actor act for so long."""
        until = time.monotonic() + seconds
        each = [acts for acts, threads in actors for _ in range(threads)]
        threads = [
            Thread(target=self._go_on, args=(acts, Random(seed * 1000 + place), until))
            for place, acts in enumerate(each)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _go_on(self, acts: Sequence["Act"], chance: Random, until: float) -> None:
        while time.monotonic() < until:
            act = chance.choice(acts)
            try:
                act(self, chance)
                self._count(self.done, act)
            except ComputeError:
                self._count(self.refused, act)
            except BaseException as error:
                self._count(self.refused, act)
                if not db_errors.deadlocked(error) and not _timed_out(error):
                    self.errors.append(error)

    def _count(self, counts: Counter[str], act: "Act") -> None:
        with self.lock:
            counts[name_of(act)] += 1

    def never_done(self, actors: Sequence[tuple[Sequence["Act"], int]]) -> set[str]:
        """Return the acts of which none was carried out: of those nothing is known."""
        return {name_of(act) for acts, _ in actors for act in acts if not self.done[name_of(act)]}

    def next_token(self) -> int:
        with self.lock:
            self.token += 1
            return self.token

    def servers(self, **wanted: Any) -> list[Server]:
        with reading(self.engine) as conn:
            return lists.listed(conn, Listing(wanted), lists.HERE)

    def some(self, chance: Random, *statuses: str) -> Server:
        """Return a server that is in one of these states, or in any; NotFound."""
        found = [one for one in self.servers() if not statuses or (one.status in statuses and not one.busy)]
        if not found:
            raise NotFound("no server is in that state")
        return chance.choice(found)

    def who(self, server: Server) -> Requester:
        return Requester(server.id, server.project_id, by(server.project_id))

    def settle(self) -> None:
        """Do all work that is left, by one thread, and delete all servers."""
        with self.engine.begin() as conn:
            conn.execute(text("UPDATE compute_services SET forced_down = false, enabled = true"))
        while self.servers():
            for server in self.servers():
                with suppress(ComputeError):
                    actions.request_task(self.compute, server.id, "deleting")
            with self.engine.begin() as conn:
                conn.execute(text("UPDATE compute_servers SET worker_until = NULL"))
            while (ring := self.bells.next()) is not None:
                task_worker.run_task(self.services[ring[0]], ring[1]) if ring[0] else None


Act = Callable[[Load, Random], object]


def _timed_out(error: BaseException) -> bool:
    """Return whether a lock was waited for too long, as happens on a busy machine; a circle is found long before."""
    return isinstance(error, DBAPIError) and isinstance(error.orig, LockNotAvailable)


def name_of(act: Act) -> str:
    return act.__name__.strip("_")
