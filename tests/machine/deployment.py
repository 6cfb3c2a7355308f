"""A deployment with all that happens to hosts: power, health, maintenance, and the rounds that look after them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import UUID

from sqlalchemy import event, text

from climate.cloud import CloudError
from climate.domain.errors import ClimateError, Unavailable
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.lease import Lease
from climate.domain.status import EventKind
from climate.power import OFF, ON, Target
from climate.power.simulated import Machine, MemoryDriver, Trouble
from climate.service.events import event_dispatch, events
from climate.service.host_operations import failures, maintenance
from climate.service.power import power as power_service
from climate.service.power.power import Wiring
from climate.store.hosts import maintenance as windows
from climate.store.hosts import pool_membership
from climate.store.hosts.maintenance import Window
from climate.store.leases.event_claims import Message
from tests.conftest import ADMIN
from tests.machine.machine_cloud import Ground
from tests.machine.world import HOSTS, WorkerDied, World
from workers.rounds import OUTSIDE_ROUNDS, ROUNDS

ALL_ROUNDS = (*ROUNDS, *OUTSIDE_ROUNDS)
HOP = timedelta(minutes=10)
"""The longest time that passes between two rounds while all comes to rest."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A stretch of time that is promised of a host, as the rows say."""

    host: int
    start: datetime
    end: datetime
    kind: str
    reservation_id: UUID | None
    slots: int
    size: tuple[int, int, int]
    preemptible: bool = False

    def at(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


TAKEN = """
    SELECT a.host, lower(a.during) AS start, upper(a.during) AS end, a.kind, a.reservation_id, a.slots, r.spec,
        a.preemptible
    FROM allocations a LEFT JOIN reservations r ON r.id = a.reservation_id
    WHERE a.state IN ('held', 'active') ORDER BY a.id
"""
SIZES = ("vcpus", "memory_mb", "disk_gb")


def _size(slots: int, spec: Mapping[str, Any] | None) -> tuple[int, int, int]:
    """Of all slots together, from what was asked for; of a whole host nothing needs to be counted."""
    vcpus, memory, disk = (slots * spec[name] if slots and spec else 0 for name in SIZES)
    return vcpus, memory, disk


SUPPLY = {"boot_seconds": 60, "shutdown_seconds": 30}


@dataclass
class Supplies(MemoryDriver):
    """Pretended machines, kept in memory.  `on_off` is called when a host is switched off that was not."""

    folder: Path = Path()
    on_off: Callable[[str], None] = field(default=lambda host: None)
    machines: dict[str, Machine] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)

    def off(self, target: Target, *, hard: bool = False) -> None:
        if self.machine(target.host).is_on:
            self.on_off(target.host)
        super().off(target, hard=hard)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self.lock:
            yield

    def _read(self, host: str) -> Machine:
        return self.machines.get(host, Machine())

    def _write(self, host: str, machine: Machine) -> None:
        self.machines[host] = machine


@dataclass
class Site(World):
    """`booted` is server -> the reservation for which its owner made it; `ordinary` are other servers.

    `tampered` are hosts that somebody else switched, or that do not follow.
    `broken` are the promises that were seen to be broken at a moment that is over.
    """

    cloud: Ground = field(default_factory=Ground)
    supply: Supplies = field(default_factory=Supplies)
    booted: dict[str, UUID] = field(default_factory=dict)
    ordinary: set[str] = field(default_factory=set)
    tampered: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    on_start: Callable[[Lease], None] = field(default=lambda lease: None)
    """Called when a lease has just been started."""
    dead: bool = False

    def __post_init__(self) -> None:
        self.supply.now = lambda: self.clock.time.timestamp()
        self.power = {"memory": self.supply}
        super().__post_init__()
        self.cloud.is_up = self.is_up
        for number in range(1, len(HOSTS) + 1):
            power_service.put(self.climate, ADMIN, str(number), Wiring("memory", SUPPLY))

    # What there is, seen past all faults.

    def is_up(self, host: str) -> bool:
        return self.supply.machine(host).state(self.clock.time.timestamp()) == ON

    def is_off(self, host: str) -> bool:
        return self.supply.machine(host).state(self.clock.time.timestamp()) == OFF

    def takes(self, host: str) -> bool:
        """Whether the cloud's scheduler would put an ordinary server on a host."""
        return self.cloud.pool_of(host) is None and host not in self.cloud.unwell and self.is_up(host)

    def places(self) -> dict[int, HostPlace]:
        with self.engine.connect() as conn:
            return {place.host: place for place in pool_membership.listed(conn)}

    def place_of(self, name: str) -> HostPlace:
        return next(place for place in self.places().values() if place.name == name)

    def taken(self) -> list[Taken]:
        """All that is promised of hosts, now and later."""
        with self.engine.connect() as conn:
            return [
                Taken(r.host, r.start, r.end, r.kind, r.reservation_id, r.slots, _size(r.slots, r.spec), r.preemptible)
                for r in conn.execute(text(TAKEN))
            ]

    def rows(self, question: str, **values: Any) -> list[Any]:
        with self.engine.connect() as conn:
            return list(conn.execute(text(question), values))

    def open_windows(self) -> list[Window]:
        with self.engine.connect() as conn:
            return windows.listed(conn, windows.WindowFilter())

    def by_reservation(self) -> Mapping[UUID, Lease]:
        return {r.id: one for one in self.leases() for r in one.reservations}

    # Workers.

    def run(self, message: Message, worker: str = "worker") -> None:
        before = self._starts()
        with self.mortal():
            super().run(message, worker)
        for lease in self._starts(carried_out=True) & before:
            self.on_start(next(one for one in self.leases() if one.id == lease))

    def _starts(self, *, carried_out: bool = False) -> set[UUID]:
        """Leases whose start has, or has not, been carried out."""
        return {one.id for one in self.leases() if one.event(EventKind.START).carried_out is carried_out}

    # Rounds.

    def rounds(self, only: int | None = None) -> None:
        """Each of the rounds once, or one of them; what the cloud or its supply cannot do now is left to the next."""
        for number, one in enumerate(ALL_ROUNDS):
            if only in (None, number):
                with self.mortal():
                    try:
                        one(self.climate)
                    except (CloudError, Unavailable):
                        continue

    @contextmanager
    def mortal(self) -> Iterator[None]:
        """A worker that dies here does nothing more, not even what it would do in any case."""

        def refuse(*_: Any) -> None:
            if self.dead:
                raise WorkerDied

        event.listen(self.engine, "before_cursor_execute", refuse)
        try:
            yield
        except WorkerDied:
            pass
        finally:
            event.remove(self.engine, "before_cursor_execute", refuse)
            self.dead, self.at_verb = False, None

    def die(self) -> None:
        self.dead = True
        raise WorkerDied

    def switch_off(self, host: str) -> None:
        """Somebody does, who is not the engine."""
        self.supply.machines[host] = Machine(is_on=False)
        self.tampered.add(host)

    # All is well again.

    def heal_hosts(self) -> None:
        """Whatever was wrong with them; machines that somebody switched off are switched on."""
        self.cloud.unwell.clear()
        for name in HOSTS:
            self.supply.inject(name, Trouble.NONE)
            if name in self.tampered:
                self.supply.on(Target(name, SUPPLY, token=self.supply.machine(name).token))
        self.tampered.clear()

    def let_go(self) -> None:
        """Admins end what they began, and users delete what they left behind."""
        for window in self.open_windows():
            maintenance.end(self.climate, ADMIN, window.id)
        for place in self.places().values():
            if place.pool is Pool.FAILED:
                with suppress(ClimateError):  # it comes back as soon as it can
                    failures.heal(self.climate, ADMIN, str(place.host))
        for server in self.cloud.servers():
            self.cloud.lose(server.id)
        self.ordinary.clear()

    def settle(self, steps: int = 4) -> None:
        """A little time passes with rounds and workers as they should be."""
        for _ in range(steps):
            event_dispatch.rescue(self.climate, "poller")
            self.rounds()
            self.run_all()
            self.clock.forward(seconds=61)

    def come_to_rest(self) -> None:
        """Let time pass until every lease is over and the rounds find nothing more to do."""
        quiet = 0
        for _ in range(500):
            event_dispatch.rescue(self.climate, "poller")
            self.rounds()
            ran = self.run_all()
            for lease in self.failed_ends():
                events.requeue(self.climate, ADMIN, lease.event(EventKind.END).id)
            wait = event_dispatch.next_due(self.climate)
            quiet = 0 if ran or wait is not None or self._claimed() else quiet + 1
            if quiet == 4:
                return
            self.clock.time += max(timedelta(seconds=1), min(wait or HOP, HOP))
        raise AssertionError("the engine does not come to rest")
