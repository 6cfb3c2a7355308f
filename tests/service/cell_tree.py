"""A tree of complete cells with engines of their own; messages go while somebody waits for an answer."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from climate.cloud.bundled import BundledCloud
from climate.cloud.bundled_cells import BundledCells
from climate.cloud.children import Child, Outcome, PartRequest
from climate.cloud.part_messages import METHOD
from climate.compute import Compute
from climate.compute.cells.builds import estimate
from climate.compute.cells.builds.scheduler import CellScheduler
from climate.compute.cells.errors import CellTimeout
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.servers import methods, sync
from climate.compute.cells.state import state
from climate.compute.nodes import services
from climate.context import Climate
from climate.domain.lease import Lease
from climate.service.hosts import inventory
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases.update import Changes
from climate.settings import Settings
from tests.api.compute.api_clients import Person, forget
from tests.api.reservation.api_clients import Deployment, Doorkeeper
from tests.compute.cells.tree import CellDatabases, Tree, stepping, tree
from tests.compute.cloud_factory import Place, node
from tests.conftest import ADMIN, MEMBER
from tests.flask_apps import app_of
from tests.installed_plugins import installed_plugins
from tests.service.deployments import Deployments, Dying, hosts_wanted
from workers import cell_boots, cell_leases

CHILDREN: Mapping[str, Sequence[str]] = {"top": ("left", "right"), "left": (), "right": ("leaf",), "leaf": ()}
PATHS = {"left": "top!left", "right": "top!right", "leaf": "top!right!leaf"}
HOSTS = {"left": 2, "right": 1, "leaf": 3}
ORDINARY = "leaf-ordinary"
"""A node that takes servers without a lease."""
LEFT, RIGHT, LEAF = PATHS["left"], PATHS["right"], PATHS["leaf"]
PATIENT = 120.0
"""Seconds that a call may take, so that a busy machine makes no test red."""
PATIENT_SERVICE = 3600.0
"""Seconds after which a compute service that was not heard of is down, for the same reason."""

Args = dict[str, Any]
Spoil = Callable[[Args, Callable[[], Any]], Any]
"""Answers a message instead of the cell: (arguments, the handler of the cell) -> value."""


@dataclass
class CellFamily(Deployments):
    """The top cell has no hosts; left has two, right one, and leaf below right three."""

    tree: Tree
    climates: dict[str, Climate]
    spoils: dict[str, Spoil] = field(default_factory=dict)
    heard: list[tuple[str, Args]] = field(default_factory=list)
    """(cell, arguments) of all requests about parts of leases."""
    person: Person | None = None
    at_work: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sites(self) -> dict[str, Any]:
        return dict(self.tree.places)

    def climate(self, name: str) -> Climate:
        return self.climates[name]

    def site(self, name: str) -> Place:
        return self.tree.places[name]

    def step(self) -> int:
        """Let all messages and reports of servers go one step."""
        below = [name for name in self.sites if name != "top"]
        with self.at_work:
            return sum(methods.report_changes(self.tree[name]) for name in below) + self.tree.step()

    def _serve(self) -> None:
        with self.at_work:  # a server is worked on by one thread at a time
            super()._serve()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the cells at work in a thread."""
        with stepping(self.step):
            yield

    def flow(self) -> None:
        """Let messages go until none is left that is due."""
        while self.step():
            pass

    def report(self) -> None:
        """Let all cells be heard of, the lowest first."""
        for name in reversed(list(CHILDREN)):
            services.refresh(self.tree[name])
            state.report(self.tree[name])
        self.flow()

    def tidy(self) -> None:
        self.spoils.clear()
        self.give_back()
        self.heard.clear()

    def app(self) -> Person:
        """A member who asks the API of the top cell."""
        if self.person is None:
            settings = replace(self.parent.settings, public_url="http://top")
            self.person = Person(app_of(Deployment(settings, self.parent, Doorkeeper(), self.tree["top"])), "member")
        return self.person

    @contextmanager
    def dying(self, number: int, *, after: bool) -> Iterator[None]:
        """The top cell dies at its `number`th talk with other cells, before it or after it."""
        whole = self.climates["top"]
        self.climates["top"] = replace(whole, cells=Dying(whole.cells, number, after))
        try:
            yield
        finally:
            self.climates["top"] = whole

    def hand(self, handlers: Mapping[str, Handlers]) -> Handlers:
        """The method of each cell, which a test may spoil."""

        def lease_part(context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
            name, said = context.name, dict(kwargs)
            self.heard.append((name, said))

            def go() -> Any:
                return handlers[name].targeted[METHOD](context, message, said)

            return self.spoils[name](said, go) if name in self.spoils else go()

        return Handlers(targeted={METHOD: lease_part})

    def change(self, lease: Lease, **wanted: Any) -> Lease:
        return tree_leases.update(self.parent, MEMBER, lease.id, Changes(**wanted))

    def ends(self) -> set[Any]:
        """The ends of all leases of all cells."""
        return {lease.period.end for name in self.sites for lease in self.of(name)}

    def wire_order(self, **wanted: Any) -> dict[str, Any]:
        """The body of a lease that starts at once."""
        end = self.now() + timedelta(hours=2)
        one = hosts_wanted(wanted.pop("least", 2), **wanted)
        return {"name": "l", "start_date": "now", "end_date": f"{end:%Y-%m-%d %H:%M}", "reservations": [one]}

    def parts(self, lease: Lease) -> list[tuple[str, int, str]]:
        return sorted((part.cell, part.hosts, str(part.state)) for part in lease.parts)


@dataclass
class Carried:
    """The cells below the top; their messages go while an answer is waited for."""

    family: CellFamily
    children: BundledCells

    def active(self) -> Sequence[Child]:
        return self.children.active()

    def silent(self) -> Sequence[Child]:
        return self.children.silent()

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        if not requests:
            return []
        with self.family.running():
            return self.children.send_all(requests)


def lost_before(said: Args, go: Callable[[], Any]) -> Any:
    """The cell never gets the message."""
    raise CellTimeout


def lost_after(said: Args, go: Callable[[], Any]) -> Any:
    """The cell does what it was asked for, and nobody hears of it."""
    go()
    raise CellTimeout


def twice(said: Args, go: Callable[[], Any]) -> Any:
    """The message comes twice, and the second answer is heard."""
    go()
    return go()


def only(action: str, spoil: Spoil, times: int = 1) -> Spoil:
    """Spoil the first messages for an action."""
    left = [times]

    def spoilt(said: Args, go: Callable[[], Any]) -> Any:
        if said["action"] == action and left[0]:
            left[0] -= 1
            return spoil(said, go)
        return go()

    return spoilt


def _climate(compute: Compute, name: str, family_clock: Any, home: Path) -> Climate:
    settings = Settings(home=home, minutes_before_end=0, cells_enable=True, cell_name=name, zone_name="z")
    return Climate(
        compute.engine,
        BundledCloud(compute),
        installed_plugins(),
        settings,
        now=family_clock,
        chance=lambda: 0.5,
        cells=BundledCells(compute),
    )


@contextmanager
def cell_family(databases: CellDatabases, home: Path) -> Iterator[CellFamily]:
    """The tree, with empty tables in each cell."""
    nodes = {name: [node(f"{name}-n{number}") for number in range(1, count + 1)] for name, count in HOSTS.items()}
    nodes["leaf"].append(node(ORDINARY))
    with tree(databases, home, CHILDREN, nodes, call_timeout=PATIENT) as cells:
        family = CellFamily(cells, {})
        for name, place in cells.places.items():
            place.compute = replace(place.compute, down_seconds=PATIENT_SERVICE)
            forget(place.compute.engine)
            services.furnish(place.compute)
            family.climates[name] = _climate(place.compute, name, family.clock, home / name)
            for number in range(1, HOSTS.get(name, 0) + 1):
                inventory.register(family.climates[name], ADMIN, f"{name}-n{number}", {"gpu": "a100"})
        leases = {name: cell_leases.handlers(climate) for name, climate in family.climates.items()}
        runners = {name: cell_boots.runner(climate) for name, climate in family.climates.items()}
        scheduler = CellScheduler(lambda compute, build: runners[compute.cells.name](compute, build))
        cells.handlers = (
            state.HANDLERS.joined(methods.HANDLERS)
            .joined(scheduler.handlers())
            .joined(estimate.HANDLERS)
            .joined(family.hand(leases))
        )
        below = [name for name in CHILDREN if name != "top"]
        for name in below:
            sync.follow(cells[name], wanted=True)
        top = family.climates["top"]
        family.climates["top"] = replace(top, cells=Carried(family, BundledCells(cells["top"])))
        family.report()
        try:
            yield family
        finally:
            for name in below:
                sync.follow(cells[name], wanted=False)
