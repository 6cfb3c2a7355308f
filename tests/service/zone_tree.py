"""Complete deployments with hosts of their own, whose clock and wires a test has in its hands."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, text

from climate.cloud.bundled import BundledCloud
from climate.cloud.bundled_zones import BundledZones
from climate.compute import services
from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.lease import Lease
from climate.service import events, hosts, leases, replay, zone_leases
from climate.service.leases import Order
from climate.store.engine import database_time
from climate.store.leases import Listing
from tests.apps import app_of
from tests.compute.zones import tree as trees
from tests.compute.zones.tree import Tree, Zone
from tests.compute.zones.wires import Application
from tests.conftest import ADMIN, MEMBER

HOSTS = 2
"""Of each zone."""

PARENTS = {"left": "parent", "right": "parent"}
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


@dataclass
class Family:
    """A parent zone and its children."""

    tree: Tree
    clock: Shifted = field(default_factory=Shifted)

    def climate(self, name: str) -> Climate:
        return self.tree[name].deployment.climate

    @property
    def parent(self) -> Climate:
        return self.climate("parent")

    def now(self) -> datetime:
        with self.parent.engine.connect() as conn:
            return self.clock(conn).replace(microsecond=0)

    def order(self, *wanted: dict[str, Any], start: float | None = 1, hours: float = 2) -> Order:
        """A lease `start` hours from now; None: at once."""
        begin = self.now() + timedelta(hours=start or 0)
        end = begin + timedelta(hours=hours)
        return Order("l", None if start is None else begin, end, None, wanted)

    def make(self, *wanted: dict[str, Any], **when: Any) -> Lease:
        return zone_leases.create(self.parent, MEMBER, self.order(*wanted, **when))

    def take(self, name: str, count: int, **when: Any) -> Lease:
        """Promise hosts of one zone to somebody there."""
        return leases.create(self.climate(name), MEMBER, self.order(hosts_wanted(count), **when))

    def of(self, name: str) -> list[Lease]:
        return leases.listed(self.climate(name), ADMIN, Listing())

    def get(self, lease: Lease) -> Lease:
        return leases.get(self.parent, ADMIN, lease.id)

    def free(self, name: str) -> bool:
        """Whether nothing of a zone is promised."""
        with self.climate(name).engine.connect() as conn:
            return int(conn.execute(text(UNRELEASED)).scalar_one()) == 0

    def run_due(self) -> int:
        return sum(run_due(self.climate(name)) for name in self.tree.zones)

    def settle(self, seconds: float = 0) -> None:
        """Let pollers and workers of all zones work until nothing is due, while so much time passes."""
        until = self.clock.ahead + timedelta(seconds=seconds)
        for zone in self.tree.zones.values():
            services.refresh(zone.compute)  # or their nodes count as down, where a test takes long
        while True:
            self._serve()
            while self.run_due():
                self._serve()
            if self.clock.ahead >= until:
                return
            self.clock.ahead = min(until, self.clock.ahead + timedelta(seconds=45))

    def _serve(self) -> None:
        """Let the compute services of all zones do what they were rung for."""
        for zone in self.tree.zones.values():
            zone.settle()

    def check(self) -> None:
        """What must hold of each zone at any moment."""
        for name in self.tree.zones:
            assert replay.differences(self.climate(name)) == [], name

    def all_or_nothing(self) -> bool:
        """Whether the parent's one lease stands in full; else nobody has anything of it."""
        self.check()
        (lease,) = self.of("parent") or [None]
        if lease is None:
            assert all(self.free(name) for name in self.tree.zones), "something stayed promised"
            return False
        assert not lease.held
        for part in lease.parts:
            (theirs,) = self.of(part.zone)
            assert theirs.id == part.lease_id
            assert not theirs.held
            assert theirs.period.end == lease.period.end
            assert len(theirs.reservations[0].hosts) == part.hosts
        return True

    def tidy(self) -> None:
        """Give everything back."""
        for name in self.tree.zones:
            self.tree.mend(name)
        self.settle(1)
        for name in self.tree.zones:
            for lease in self.of(name):
                try:
                    leases.delete(self.climate(name), ADMIN, lease.id)
                except ClimateError:
                    continue
        self.settle(30)

    def adopt(self, above: str, name: str) -> None:
        """Register a child, and poll it."""
        child = self.tree[above].adopt(self.tree[name])
        with self.climate(above).engine.begin() as conn:
            conn.execute(text("UPDATE compute_zones SET name = :name WHERE id = :id"), {"name": name, "id": child.id})

    # Faults.

    def between(self, name: str, spoil: Callable[[dict[str, Any], Callable[[], Any]], Any]) -> None:
        """Let `spoil(environ, pass_on)` answer the reservation requests to a zone."""
        zone = self.tree[name]

        def application(environ: dict[str, Any], start_response: Any) -> Any:
            if not environ["PATH_INFO"].startswith("/reservation"):
                return zone.app(environ, start_response)
            return spoil(environ, lambda: zone.app(environ, start_response))

        heard: Application = application
        self.tree.applications[name] = heard

    @contextmanager
    def dying(self, number: int, *, after: bool) -> Iterator[None]:
        """The parent dies at its `number`th talk with children, before it or after it."""
        zone = self.tree["parent"]
        whole = zone.deployment
        zones = Dying(whole.climate.zones, number, after)
        zone.deployment = replace(whole, climate=replace(whole.climate, zones=zones))
        try:
            yield
        finally:
            zone.deployment = whole

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
    """Child zones that the parent does not live to hear."""

    zones: Any
    number: int
    after: bool
    count: int = 0

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "Dying":
        return self

    def active(self) -> Any:
        return self.zones.active()

    def ask_all(self, requests: Any) -> Any:
        if not requests:
            return []
        self.count += 1
        if self.count == self.number and not self.after:
            raise Died
        answers = self.zones.ask_all(requests)
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
        events.rescue(climate, "poller")
        events.claim_due(climate, "poller")
        messages = events.to_send(climate)
        if not messages:
            return count
        for message in messages:
            events.run(climate, message.event_id, message.token, "worker")
        count += len(messages)


def _ready(family: Family, zone: Zone) -> None:
    """Give a zone hosts, the test's clock, and a way to its children."""
    compute, whole = zone.deployment.compute, zone.deployment
    climate = replace(
        whole.climate, cloud=BundledCloud(compute), zones=BundledZones(compute), now=family.clock, chance=lambda: 0.5
    )
    climate = replace(climate, settings=replace(climate.settings, minutes_before_end=0))
    zone.deployment = replace(whole, climate=climate)
    zone.app = app_of(zone.deployment)
    zone.people.clear()
    family.tree.mend(zone.name)
    for number in range(1, HOSTS + 1):
        hosts.register(climate, ADMIN, f"{zone.name}-n{number}", {})


@contextmanager
def family_of(make_database: Any, home: Path, parents: Mapping[str, str] = PARENTS) -> Iterator[Family]:
    """The zone `parent` and those below it, by the name of their parent."""
    names = ("parent", *parents)
    with trees.tree(make_database, trees.template(make_database), home, names) as tree:
        family = Family(tree)
        for zone in tree.zones.values():
            _ready(family, zone)
        for name, above in parents.items():
            family.adopt(above, name)
        yield family
