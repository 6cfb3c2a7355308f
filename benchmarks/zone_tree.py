"""Complete zones in one process for benchmarks: they speak HTTP to each other in memory, each with its own database."""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from flask import Flask
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from werkzeug.test import create_environ, run_wsgi_app

from api import create_app
from benchmarks.scratch import Place
from climate import bootstrap, identity
from climate.bootstrap import Deployment
from climate.compute.nodes import services
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.zones import registry
from climate.compute.zones.http.messages import HttpAnswer, HttpRequest
from climate.compute.zones.http.transport import Outcome, Talk
from climate.configuration import zones as zone_settings
from climate.settings import Settings

C = "/compute/v2.1"
Application = Callable[..., Any]


class Wires:
    """Leads requests to applications by the host of their URL, in threads; `silent` hosts answer at no time."""

    def __init__(self, applications: dict[str, Application], silent: Container[str]) -> None:
        self.applications, self.silent = applications, silent

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once."""
        begun, answers = time.monotonic(), []
        with ThreadPoolExecutor(max_workers=len(talks)) as pool:
            answers = [pool.submit(self._hold, talk) for talk, _ in talks]
            outcomes = [answer.result() for answer in answers]
        late = max((limit for (_, limit), outcome in zip(talks, outcomes, strict=True) if _is_late(outcome)), default=0)
        time.sleep(max(0, begun + late - time.monotonic()))
        return outcomes

    def _hold(self, talk: Talk) -> Outcome:
        try:
            request = next(talk)
            while request.origin.host not in self.silent:
                request = talk.send(self._answer(request))
        except StopIteration as end:
            return end.value
        return TimeoutError()

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        environ = create_environ(
            request.target,
            f"{request.origin.scheme}://{request.origin.authority}",
            method=request.method,
            headers=list(request.headers),
            data=request.content,
        )
        answer, status, headers = run_wsgi_app(self.applications[request.origin.host], environ)
        return HttpAnswer(int(status[:3]), {name.lower(): value for name, value in headers}, b"".join(answer))


def _is_late(outcome: Outcome) -> bool:
    return isinstance(outcome, TimeoutError)


@dataclass
class Zone:
    """One zone, and its administrator."""

    name: str
    deployment: Deployment
    app: Flask
    token: str = ""

    @property
    def password(self) -> str:
        return (self.deployment.settings.home / "admin-password").read_text().strip()

    def ask(self, method: str, path: str, body: Any = None, below: str = C) -> Any:
        """The answer to the administrator of the zone."""
        headers = {"X-Auth-Token": self.token or self._sign_in()}
        answer = self.app.test_client().open(below + path, method=method, json=body, headers=headers)
        assert answer.status_code < 300, answer.get_data(as_text=True)
        return answer.get_json()

    def adopt(self, child: "Zone") -> None:
        """Register a child."""
        account = {"username": "admin", "password": child.password}
        registry.add(self.deployment.compute, {"api_url": f"http://{child.name}{C}", **account})

    def _sign_in(self) -> str:
        user = {"name": "admin", "password": self.password, "domain": {"name": "Default"}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        self.token = self.app.test_client().post("/identity/v3/auth/tokens", json=body).headers["X-Subject-Token"]
        return self.token


@dataclass
class Zones:
    """Zones of one process, and the network between them."""

    place: Place
    stack: ExitStack
    applications: dict[str, Application] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    template: str = ""
    """A database that is migrated; others are copies of it."""

    def make(self, name: str, **settings: Any) -> Zone:
        """A zone of its own, after its first start."""
        chosen = self.settings(name, settings)
        chosen.home.mkdir(parents=True)
        built = bootstrap.build(chosen, application="climate-bench", pool_size=10)
        engine = built.climate.engine
        self.stack.callback(engine.dispose)
        options = zone_settings.options(chosen, engine, built.climate.vault, Wires(self.applications, self.silent))
        compute = replace(built.compute, zones=options, driver=MemoryDriver([]))
        deployment = replace(built, compute=compute)
        identity.first_start(deployment.identity, chosen, lambda said: None)
        services.furnish(compute)
        zone = Zone(name, deployment, create_app(deployment))
        self.applications[name] = zone.app
        return zone

    def settings(self, name: str, settings: dict[str, Any]) -> Settings:
        """The settings of a zone, with a new database."""
        here = self.place.settings
        database = f"climate_bench_{uuid4().hex[:12]}"
        admin = create_engine(
            make_url(here.database_url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        with admin.connect() as conn:
            conn.execute(text(f'CREATE DATABASE "{database}" TEMPLATE "{self.template or "template0"}"'))
        self.stack.callback(_drop, admin, database)
        url = make_url(here.database_url).set(database=database).render_as_string(hide_password=False)
        own = {"home": here.home / database, "database_url": url, "public_url": f"http://{name}", "zone_name": name}
        keys = {"build_plan_encryption_key": f"the secret key of {name}", "service_down_seconds": 10**6}
        return replace(here, **{**own, **keys, "zone_timeout_seconds": 60.0, **settings})


def _drop(admin: Any, database: str) -> None:
    with admin.connect() as conn:
        conn.execute(text(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'))
    admin.dispose()


@contextmanager
def zones(place: Place) -> Iterator[Zones]:
    """Zones to be made; their databases are gone afterwards."""
    with ExitStack() as stack:
        made = Zones(place, stack)
        first = made.settings("template", {})
        bootstrap.migrate(first)
        made.template = str(make_url(first.database_url).database)
        yield made


_NODES = (
    "INSERT INTO compute_services (host) SELECT 'service-' || i FROM generate_series(1, 10) i",
    """INSERT INTO compute_nodes (service_host, name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                                  hypervisor_version, used_ram_mb, supported)
       SELECT 'service-' || 1 + i % 10, 'node-' || i, 64, 262144, 2000, '{}', 'climate', 1000000, i % 100 * 1024,
              '[["x86_64", "kvm", "hvm"]]'
       FROM generate_series(1, :count) i""",
)


def fill(zone: Zone, count: int) -> None:
    """Nodes that exist in the books of a zone only."""
    with zone.deployment.compute.engine.begin() as conn:
        for statement in _NODES:
            conn.execute(text(statement), {"count": count})
