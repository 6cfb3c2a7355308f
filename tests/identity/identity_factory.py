"""A place to test in: a database with identity in it, and an app over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, cast

from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from climate import compute as climate_compute
from climate.context import Climate
from climate.identity import Identity, build, first_start
from climate.identity.store.tables import metadata
from climate.settings import Settings
from climate.store.tables.leases import metadata as engine_tables
from tests import flask_apps
from tests.databases import connected, create_tables, empty

QUICK = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


@dataclass(frozen=True)
class Place:
    """Identity and its settings after the first start; stands in for the deployment."""

    settings: Settings
    identity: Identity
    climate: Climate
    said: list[str] = field(default_factory=list)
    compute: Any = None

    def password(self, user: str) -> str:
        return (self.settings.home / f"{user}-password").read_text().strip()


@contextmanager
def place(database: str, home: Path, settings: Settings | None = None) -> Iterator[Place]:
    """Tables, users and keys as after the first start; the tables are emptied first."""
    settings = settings or Settings(home=home)
    with connected(database) as engine:
        create_tables(engine.url, metadata)
        create_tables(engine.url, engine_tables)
        with engine.begin() as conn:
            empty(conn, metadata.sorted_tables)
        climate = Climate(engine, cast("Any", None), {}, settings)
        compute = climate_compute.build(engine, home=home, service_host="c", cast=lambda host, *servers: None)
        found = Place(settings, build(engine, settings, QUICK), climate, compute=compute)
        first_start(found.identity, settings, found.said.append)
        yield found


def app_of(deployment: Place) -> Flask:
    return flask_apps.app_of(deployment)


class Asker:
    """A test client that signs in, and knows its token."""

    def __init__(self, app: Flask, token: str = "") -> None:
        self.client: FlaskClient = app.test_client()
        self.token = token

    def ask(self, method: str, path: str, **kwargs: Any) -> TestResponse:
        headers = {**({"X-Auth-Token": self.token} if self.token else {}), **kwargs.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **kwargs)

    def sign_in(self, user: str, password: str, project: str | None = None) -> TestResponse:
        answer = self.ask("POST", "/identity/v3/auth/tokens", json=password_body(user, password, project))
        self.token = answer.headers.get("X-Subject-Token", "")
        return answer


def password_body(user: str, password: str, project: str | None = None) -> dict[str, Any]:
    domain = {"name": "Default"}
    proof = {"user": {"name": user, "password": password, "domain": domain}}
    auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": proof}}
    if project is not None:
        auth["scope"] = {"project": {"name": project, "domain": domain}}
    return {"auth": auth}


@contextmanager
def served(app: Flask, port: int = 0) -> Iterator[int]:
    """The app on a loopback port."""
    server = make_server("127.0.0.1", port, app, threaded=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()
