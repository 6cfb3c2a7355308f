"""Several complete zones in one process: each with a database, users, nodes and an API of its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from flask import Flask
from sqlalchemy import make_url
from werkzeug.test import TestResponse

from climate import bootstrap, identity
from climate.bootstrap import Deployment
from climate.compute import Compute
from climate.compute.nodes import services
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.store.tables import metadata as compute_tables
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.zones import registry
from climate.compute.zones.http.transport import Outcome, Talk, Transport
from climate.compute.zones.models import ChildZone
from climate.configuration import zones as zone_settings
from climate.settings import Settings
from tests.compute.cloud_factory import Rings, node
from tests.compute.zones.in_process_http import Application, Sockets, Wires
from tests.databases import dependants, empty, unsafe
from tests.flask_apps import app_of
from tests.identity.identity_factory import QUICK, Asker, served

C = "/compute/v2.1"
PATIENT = 120.0
"""Deadline of a talk, in seconds, so that a busy machine makes no test red."""


FORGOTTEN = dependants(
    *(compute_tables.tables[f"compute_{name}"] for name in ("zones", "service_capabilities", "zone_servers"))
)
"""What a zone knows of its children."""


@dataclass
class Zone:
    """One zone: its deployment, its application, and people who ask it things."""

    name: str
    deployment: Deployment
    app: Flask
    rings: Rings
    driver: MemoryDriver
    people: dict[str, Asker] = field(default_factory=dict)

    @property
    def compute(self) -> Compute:
        return self.deployment.compute

    @property
    def url(self) -> str:
        return f"http://{self.name}{C}"

    def password(self, user: str) -> str:
        return (self.deployment.settings.home / f"{user}-password").read_text().strip()

    def person(self, user: str) -> Asker:
        """Somebody who is signed in: admin or demo."""
        if user not in self.people:
            self.people[user] = Asker(self.app)
            assert self.people[user].sign_in(user, self.password(user)).status_code == 201
        return self.people[user]

    def ask(self, method: str, path: str, body: Any = None, user: str = "admin", **sent: Any) -> TestResponse:
        """Ask below /compute/v2.1."""
        sent = {**sent, "json": body} if body is not None else sent
        return self.person(user).ask(method, f"{C}{path}", **sent)

    def adopt(self, child: "Zone", **weights: float) -> ChildZone:
        """Register a child with its administrator's account."""
        values = {"api_url": child.url, "username": "admin", "password": child.password("admin"), **weights}
        return registry.add(self.compute, values)

    def boot(self, user: str = "demo", **changes: Any) -> str:
        """Boot a server here, and see it through; its id."""
        server = {"name": "s", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "auto", **changes}
        answer = self.ask("POST", "/servers", {"server": server}, user, headers=LATEST)
        assert answer.status_code == 202, answer.get_data(as_text=True)
        self.settle()
        return str(answer.get_json()["server"]["id"])

    def settle(self) -> None:
        """Do the work of the compute service that was rung for."""
        self.rings.answer(self.compute)

    def place(self, server_id: str, zone_id: int, user: str = "demo", build_id: str = "r-1") -> None:
        """Write down that this zone placed a server in a child, for a user of its own."""
        whose = self.person(user).ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": self.token(user)})
        token = whose.get_json()["token"]
        row = {"server_id": server_id, "zone_id": zone_id, "build_id": build_id, "name": "s", "vcpus": 1, "ram_mb": 512}
        row |= {"project_id": token["project"]["id"], "user_id": token["user"]["id"]}
        with self.compute.engine.begin() as conn:
            conn.execute(compute_tables.tables["compute_zone_servers"].insert().values(row))

    def forget_zones(self) -> None:
        """Forget all children, reports and placed servers; ids begin at 1 again."""
        with self.compute.engine.begin() as conn:
            empty(conn, FORGOTTEN)
            conn.exec_driver_sql("SELECT setval(pg_get_serial_sequence('compute_zones', 'id'), 1, false)")

    def token(self, user: str) -> str:
        return self.person(user).token


LATEST = {"OpenStack-API-Version": "compute 2.79"}


@dataclass
class Tree:
    """Zones by name.  `applications` is the network: whoever is not in it cannot be reached."""

    zones: dict[str, Zone] = field(default_factory=dict)
    applications: dict[str, Application] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """(zone, path below /compute/v2.1) of all requests between zones."""
    ports: dict[str, int] = field(default_factory=dict)
    """Ports of the zones, when they talk over sockets."""

    @cached_property
    def sockets(self) -> Sockets:
        return Sockets(self.applications, self.ports)

    @property
    def transport(self) -> Transport:
        """The way from a zone to the others."""
        return self

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Carry the talks of zones."""
        return (self.sockets if self.ports else Wires(self.applications)).run(talks)

    def __getitem__(self, name: str) -> Zone:
        return self.zones[name]

    def cut(self, name: str) -> None:
        """Make a zone unreachable."""
        del self.applications[name]

    def mend(self, name: str) -> None:
        """Make it reachable again."""
        self.applications[name] = self._heard(self.zones[name])

    def plug(self, zone: Zone) -> None:
        """Add a zone to the network."""
        self.zones[zone.name] = zone
        self.mend(zone.name)

    def dispatch(self, name: str) -> Application:
        """An application that is whatever the network has for a zone at the moment."""
        return lambda environ, start_response: self.applications[name](environ, start_response)

    def _heard(self, zone: Zone) -> Application:
        def application(environ: dict[str, Any], start_response: Any) -> Any:
            path = environ["PATH_INFO"]
            if path.startswith(C):
                self.asked.append((zone.name, path.removeprefix(C)))
            return zone.app(environ, start_response)

        return application


def zone(tree: Tree, name: str, database: str, home: Path, settings: Mapping[str, Any]) -> Zone:
    """Build a zone with two nodes that only pretend; the first start is over."""
    chosen = Settings(
        **{
            "home": home / name,
            "database_url": unsafe(database),
            "redis_url": "redis://127.0.0.1:1/0",
            "public_url": f"http://{name}",
            "zone_name": name,
            "zone_capabilities": "hypervisor=memory",
            "zone_timeout_seconds": PATIENT,
            # Services show life once: on a busy machine the tests of a module outlast the usual time.
            "service_down_seconds": 10**6,
            **settings,
        }
    )
    built = bootstrap.build(chosen, pool_size=6)
    engine, rings = built.climate.engine, Rings()
    driver = MemoryDriver([node(f"{name}-n{place}") for place in (1, 2)])
    compute = replace(
        built.compute,
        driver=driver,
        cast=rings,
        zones=zone_settings.options(chosen, engine, built.climate.vault, tree.transport),
    )
    deployment = replace(built, compute=compute, identity=identity.build(engine, chosen, QUICK))
    identity.first_start(deployment.identity, chosen, lambda said: None)
    services.refresh(compute)
    services.furnish(compute)
    return Zone(name, deployment, app_of(deployment), rings, driver)


NAMES = ("parent", "left", "right", "grandchild")


@contextmanager
def tree(
    make_database: Any,
    database: str,
    home: Path,
    names: tuple[str, ...] = NAMES,
    *,
    sockets: bool = False,
    **settings: Any,
) -> Iterator[Tree]:
    """Zones that are not related yet; with `sockets` they talk over HTTP as separate processes would."""
    made = Tree()
    with ExitStack() as servers:
        for name in names:
            made.plug(zone(made, name, make_database(database), home, settings))
            if sockets:
                made.ports[name] = servers.enter_context(served(cast("Any", made.dispatch(name))))
        yield made
    for one in made.zones.values():
        one.compute.engine.dispose()
        make_database.drop(str(make_url(one.deployment.settings.database_url).database))


def grown(found: Tree) -> Tree:
    """Parent -> left and right, left -> grandchild."""
    found["parent"].adopt(found["left"])
    found["parent"].adopt(found["right"])
    found["left"].adopt(found["grandchild"])
    return found
