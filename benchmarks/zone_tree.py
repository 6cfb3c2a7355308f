"""Complete zones in one process for benchmarks: they speak HTTP to each other in memory, each with its own database."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx
from flask import Flask
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from api import create_app
from benchmarks.scratch import Place
from climate import bootstrap, identity, zoning
from climate.bootstrap import Deployment
from climate.compute import services
from climate.compute.virt.memory import MemoryDriver
from climate.compute.zones import registry
from climate.settings import Settings

C = "/compute/v2.1"
Application = Callable[..., Any]


class Wires(httpx.AsyncBaseTransport):
    """Leads requests to applications by the host of their URL, in threads; to `silent` hosts they never arrive."""

    def __init__(self, applications: dict[str, Application], silent: frozenset[str]) -> None:
        self.applications, self.silent = applications, silent

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.host in self.silent:
            await asyncio.Event().wait()
        content = await request.aread()
        return await asyncio.to_thread(self._answered, request, content)

    def _answered(self, request: httpx.Request, content: bytes) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        with httpx.WSGITransport(app=self.applications[request.url.host]) as transport:
            answer = transport.handle_request(sent)
            return httpx.Response(answer.status_code, headers=answer.headers, stream=httpx.ByteStream(answer.read()))


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
        options = zoning.options(
            chosen, engine, built.climate.vault, lambda: Wires(self.applications, frozenset(self.silent))
        )
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
