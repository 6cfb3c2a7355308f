"""Complete deployments with hosts of their own, of which one has leases over the others; a test has the clock."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Connection, event, text

from climate.compute import Compute
from climate.compute.nodes import services
from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.lease import Lease
from climate.service.events import event_dispatch, events
from climate.service.journal import consistency_check
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.engine import database_time
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER

UNRELEASED = "SELECT count(*) FROM allocations WHERE state IN ('held', 'active')"


class Died(BaseException):
    """The process is gone: no handler runs."""


@dataclass
class Shifted:
    """The database's clock, and how far it was put forward."""

    ahead: timedelta = timedelta(0)

    def __call__(self, conn: Connection) -> datetime:
        return database_time(conn) + self.ahead

    def forward(self, **step: float) -> None:
        self.ahead += timedelta(**step)


class Site(Protocol):
    """One deployment: its bundled cloud, and the doorbell of that."""

    @property
    def compute(self) -> Compute: ...

    def settle(self) -> None: ...


@dataclass
class Deployments:
    """A parent and its children."""

    clock: Shifted = field(default_factory=Shifted, kw_only=True)

    @property
    def sites(self) -> dict[str, Any]:
        """The deployments by name; the parent is the first."""
        raise NotImplementedError

    def climate(self, name: str) -> Climate:
        raise NotImplementedError

    @property
    def parent(self) -> Climate:
        return self.climate(next(iter(self.sites)))

    def now(self) -> datetime:
        with self.parent.engine.connect() as conn:
            return self.clock(conn).replace(microsecond=0)

    def order(self, *wanted: dict[str, Any], start: float | None = 1, hours: float = 2) -> LeaseRequest:
        """A lease `start` hours from now; None: at once."""
        begin = self.now() + timedelta(hours=start or 0)
        end = begin + timedelta(hours=hours)
        return LeaseRequest("l", None if start is None else begin, end, None, wanted)

    def make(self, *wanted: dict[str, Any], **when: Any) -> Lease:
        return tree_leases.create(self.parent, MEMBER, self.order(*wanted, **when))

    def take(self, name: str, count: int, **when: Any) -> Lease:
        """Promise hosts of one deployment to somebody there."""
        return leases.create(self.climate(name), MEMBER, self.order(hosts_wanted(count), **when))

    def of(self, name: str) -> list[Lease]:
        return leases.listed(self.climate(name), ADMIN, Listing())

    def get(self, lease: Lease) -> Lease:
        return leases.get(self.parent, ADMIN, lease.id)

    def free(self, name: str) -> bool:
        """Whether nothing of a deployment is promised."""
        with self.climate(name).engine.connect() as conn:
            return int(conn.execute(text(UNRELEASED)).scalar_one()) == 0

    def run_due(self) -> int:
        return sum(run_due(self.climate(name)) for name in self.sites)

    def settle(self, seconds: float = 0) -> None:
        """Let all pollers and workers work until nothing is due, while so much time passes."""
        until = self.clock.ahead + timedelta(seconds=seconds)
        for site in self.sites.values():
            services.refresh(site.compute)  # or their nodes count as down, where a test takes long
        while True:
            self._serve()
            while self.run_due():
                self._serve()
            if self.clock.ahead >= until:
                return
            self.clock.ahead = min(until, self.clock.ahead + timedelta(seconds=45))

    def _serve(self) -> None:
        """Let all compute services do what they were rung for."""
        for site in self.sites.values():
            site.settle()

    def check(self) -> None:
        """What must hold of each deployment at any moment."""
        for name in self.sites:
            assert consistency_check.differences(self.climate(name)) == [], name

    def all_or_nothing(self) -> bool:
        """Whether the parent's one lease stands in full; else nobody has anything of it."""
        self.check()
        (lease,) = self.of(next(iter(self.sites))) or [None]
        if lease is None:
            assert all(self.free(name) for name in self.sites), "something stayed promised"
            return False
        assert not lease.held
        for part in lease.parts:
            (theirs,) = self.of((part.cell or part.zone).rpartition("!")[2])
            assert theirs.id == part.lease_id
            assert not theirs.held
            assert theirs.period.end == lease.period.end
            assert len(theirs.reservations[0].hosts) == part.hosts
        return True

    def give_back(self) -> None:
        """Give everything back; a lease that is being worked on is deleted later."""
        self.settle(1)
        for _ in range(10):
            left = [(name, lease.id) for name in self.sites for lease in self.of(name)]
            if not left:
                return
            for name, lease_id in left:
                try:
                    leases.delete(self.climate(name), ADMIN, lease_id)
                except ClimateError:
                    continue
            self.settle(30)
        raise AssertionError(f"leases are left: {left}")

    @contextmanager
    def dying_at_record(self, number: int) -> Iterator[None]:
        """The parent dies at the `number`th time that it writes to its journal."""
        seen = [0]

        def strike(conn: Any, cursor: Any, said: str, *rest: Any) -> None:
            if said.startswith("WITH leases_saved"):
                seen[0] += 1
                if seen[0] == number:
                    raise Died

        event.listen(self.parent.engine, "before_cursor_execute", strike)
        try:
            yield
        finally:
            event.remove(self.parent.engine, "before_cursor_execute", strike)


@dataclass
class Dying:
    """Children that the parent does not live to hear."""

    children: Any
    number: int
    after: bool
    count: int = 0

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "Dying":
        return self

    def active(self) -> Any:
        return self.children.active()

    def silent(self) -> Any:
        return self.children.silent()

    def send_all(self, requests: Sequence[Any]) -> Any:
        if not requests:
            return []
        self.count += 1
        if self.count == self.number and not self.after:
            raise Died
        answers = self.children.send_all(requests)
        if self.count == self.number:
            raise Died
        return answers


def hosts_wanted(least: int, most: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "resource_type": "physical:host",
        "min": least,
        "max": most or least,
        "hypervisor_properties": "",
        "resource_properties": "",
        "before_end": "",
        **more,
    }


def run_due(climate: Climate) -> int:
    count = 0
    while True:
        event_dispatch.rescue(climate, "poller")
        event_dispatch.claim_due(climate, "poller")
        messages = event_dispatch.to_send(climate)
        if not messages:
            return count
        for message in messages:
            events.run(climate, message.event_id, message.token, "worker")
        count += len(messages)
