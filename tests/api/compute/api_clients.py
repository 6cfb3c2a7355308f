"""The whole app over a bundled cloud, with people who ask it things."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import Engine, text
from werkzeug.test import TestResponse

from climate.cloud.bundled import BundledCloud
from climate.compute import Compute
from climate.compute.models.flavor import Flavor
from climate.compute.network.network_options import NetworkOptions
from climate.compute.nodes import services
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.store.projects import flavors
from climate.compute.store.tables import metadata as compute_metadata
from climate.context import Climate
from climate.service.hosts import inventory
from climate.settings import Settings
from climate.store.tables import metadata
from climate.store.tables.leases import epochs
from tests.api.reservation.api_clients import Deployment, Doorkeeper, run_due
from tests.compute.cloud_factory import SERVICE, Place, node, place
from tests.conftest import ADMIN, MEMBER
from tests.databases import empty
from tests.flask_apps import app_of
from tests.installed_plugins import installed_plugins

NODES = ("gpu-1", "gpu-2", "std-1")
SECRET = Flavor("secret", "secret", 1, 512, 1, is_public=False, projects=(ADMIN.project_id,))


@dataclass
class World:
    """An app, the cloud behind it, and the engine beside it."""

    app: Flask
    here: Place
    climate: Climate

    def settle(self) -> None:
        """Let pollers, workers and the compute service do what is due."""
        run_due(self.climate)
        self.here.settle()
        run_due(self.climate)
        self.here.settle()

    def at_once(self, *kinds: str) -> None:
        """Make events of these kinds due now, and let them be done."""
        with self.climate.engine.begin() as conn:
            conn.execute(
                text("UPDATE events SET run_at = now() WHERE status = 'UNDONE' AND kind = ANY(:kinds)"),
                {"kinds": list(kinds)},
            )
        self.settle()


@dataclass
class Person:
    """Somebody with a token."""

    app: Flask
    name: str

    def __call__(self, method: str, path: str, body: Any = None, **sent: Any) -> TestResponse:
        headers = {"X-Auth-Token": self.name, "Accept": "application/json", **sent.pop("headers", {})}
        sent = {**sent, "json": body} if body is not None else sent
        return self.app.test_client().open(path, method=method, headers=headers, **sent)

    def get(self, path: str, version: str | None = None) -> Any:
        """The body of an answer, in the shape of a microversion."""
        headers = {"OpenStack-API-Version": f"compute {version}"} if version else {}
        return done(self("GET", path, headers=headers))

    def boot(self, hints: Mapping[str, Any] | None = None, **changes: Any) -> TestResponse:
        """Ask for a server, as the openstack client does."""
        body: dict[str, Any] = {"server": server(**changes)}
        if hints is not None:
            body["OS-SCH-HNT:scheduler_hints"] = dict(hints)
        return self("POST", "/compute/v2.1/servers", body)

    def booted(self, hints: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """Ask for a server; its id."""
        return str(done(self.boot(hints, **changes), 202)["server"]["id"])

    def act(self, server_id: str, action: str, details: Any = None) -> TestResponse:
        return self("POST", f"/compute/v2.1/servers/{server_id}/action", {action: details})

    def status(self, server_id: str) -> str:
        return str(self.get(f"/compute/v2.1/servers/{server_id}")["server"]["status"])


def server(**changes: Any) -> dict[str, Any]:
    """The body of a server; an ellipsis takes a key away."""
    body = {
        "name": "s1",
        "imageRef": IMAGE_ID,
        "flavorRef": "1",
        "min_count": 1,
        "max_count": 1,
        "networks": "auto",
        "block_device_mapping_v2": [{"uuid": IMAGE_ID, "source_type": "image", "destination_type": "local"}],
    }
    return {key: value for key, value in {**body, **changes}.items() if value is not ...}


def done(answer: TestResponse, status: int = 200) -> Any:
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.json if answer.data else None


def message(answer: TestResponse, status: int, key: str) -> str:
    """The message of a refusal of the status, worded as compute does."""
    body = done(answer, status)
    assert list(body) == [key]
    assert body[key]["code"] == status
    return str(body[key]["message"])


def hours_away(hours: float) -> str:
    return f"{datetime.now(UTC) + timedelta(hours=hours):%Y-%m-%d %H:%M}"


def written(there: World) -> dict[str, Any]:
    """Rows of all tables, and what the member's project uses of its quota: what no refusal changes."""
    with there.climate.engine.connect() as conn:
        found = dict(conn.exec_driver_sql(_counts()).mappings().one())
    held = there.here.count("compute_addresses", "server_id IS NOT NULL")
    limits = Person(there.app, "member").get("/compute/v2.1/limits")["limits"]["absolute"]
    return {**found, **limits, "addresses in use": held}


@cache
def _counts() -> str:
    """Return one statement that counts the rows of each table: a statement for each takes longer than a refusal."""
    names = [table.name for table in (*compute_metadata.sorted_tables, *metadata.sorted_tables)]
    return "SELECT " + ", ".join(f'(SELECT count(*) FROM "{name}") AS "{name}"' for name in names)


ENGINE_TABLES = [table for table in metadata.sorted_tables if table is not epochs]
"""The engine's tables, even the journal; the epoch goes on."""


def forget(engine: Engine) -> None:
    """Empty the engine's tables; the epoch goes on."""
    with engine.begin() as conn:
        empty(conn, ENGINE_TABLES)


def _furnish(compute: Compute) -> None:
    """Register two nodes as hosts of leases, and create what a new cloud has."""
    with compute.engine.begin() as conn:
        flavors.insert(conn, SECRET)
    services.furnish(compute)
    for name in ("gpu-1", "gpu-2"):
        inventory.register(_engine_of(compute), ADMIN, name, {"gpu": "a100"})


def _engine_of(compute: Compute) -> Climate:
    settings = Settings(home=compute.home, minutes_before_end=0)
    return Climate(compute.engine, BundledCloud(compute), installed_plugins(), settings)


@contextmanager
def world(database: str, home: Path, network: NetworkOptions | None = None) -> Iterator[World]:
    """Two nodes that are registered as hosts of leases, and an ordinary one."""
    nodes = [node(name) for name in NODES]
    with place(database, home, nodes, tables=ENGINE_TABLES, furnish=_furnish) as here:
        settings = Settings(home=home, public_url="http://here")
        if network is not None:
            here = replace(here, compute=replace(here.compute, network=network))
        climate = _engine_of(here.compute)
        yield World(app_of(Deployment(settings, climate, Doorkeeper(), here.compute)), here, climate)


__all__ = [
    "MEMBER",
    "NODES",
    "SERVICE",
    "Person",
    "World",
    "done",
    "hours_away",
    "message",
    "server",
    "world",
    "written",
]
