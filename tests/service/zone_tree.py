"""Complete zones with hosts of their own, whose clock and wires a test has in its hands."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from climate.cloud.bundled import BundledCloud
from climate.cloud.bundled_zones import BundledZones
from climate.context import Climate
from climate.service.hosts import inventory
from tests.compute.zones.build_plan_trees import planned
from tests.compute.zones.in_process_http import Application
from tests.compute.zones.tree import Tree, Zone
from tests.conftest import ADMIN
from tests.flask_apps import app_of
from tests.service.deployments import Deployments, Died, Dying, hosts_wanted

__all__ = ["Died", "Family", "family_of", "hosts_wanted"]

HOSTS = 2
"""Number of hosts in each zone."""

PARENTS = {"left": "parent", "right": "parent"}


@dataclass
class Family(Deployments):
    """A parent zone and its children."""

    tree: Tree

    @property
    def sites(self) -> dict[str, Any]:
        return dict(self.tree.zones)

    def climate(self, name: str) -> Climate:
        return self.tree[name].deployment.climate

    def tidy(self) -> None:
        """Make all zones reachable, and give everything back."""
        for name in self.tree.zones:
            self.tree.mend(name)
        self.give_back()

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
        inventory.register(climate, ADMIN, f"{zone.name}-n{number}", {})


@contextmanager
def family_of(make_database: Any, template: str, home: Path, parents: Mapping[str, str] = PARENTS) -> Iterator[Family]:
    """The zone `parent` and those below it, by the name of their parent; `template` has all tables."""
    names = ("parent", *parents)
    with planned(make_database, template, home, names) as tree:
        family = Family(tree)
        for zone in tree.zones.values():
            _ready(family, zone)
        for name, above in parents.items():
            family.adopt(above, name)
        yield family
