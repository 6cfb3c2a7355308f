"""The app over an engine with a fake cloud, and people who ask it things."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import Engine, func, select

from climate import power
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import NotAuthenticated
from climate.domain.policy import Caller
from climate.identity.models import AccountNames
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.settings import Settings
from climate.store.tables import hosts, leases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock, cloud_host
from tests.flask_apps import app_of
from tests.installed_plugins import installed_plugins

READER = Caller("reader-user", "project", frozenset({"reader"}))
NOBODY = Caller("nobody", "", frozenset())
PEOPLE = {"admin": ADMIN, "member": MEMBER, "stranger": STRANGER, "reader": READER, "without a role": NOBODY}

V1 = "/reservation/v1"


class Doorkeeper:
    """Identity: everybody's token is what he is called."""

    def authenticate(self, headers: Mapping[str, str], address: str) -> Caller:
        try:
            return PEOPLE[headers["X-Auth-Token"]]
        except KeyError:
            raise NotAuthenticated() from None

    def may_read(self, user_id: str, project_id: str) -> bool:
        return any((one.user_id, one.project_id) == (user_id, project_id) for one in PEOPLE.values())

    def account_ids(self, user_name: str, project_name: str) -> tuple[str | None, str | None]:
        users = {f"{one.user_id} by name": one.user_id for one in PEOPLE.values()}
        projects = {f"{one.project_id} by name": one.project_id for one in PEOPLE.values()}
        return users.get(user_name), projects.get(project_name)

    def names(self, user_ids: Collection[str], project_ids: Collection[str]) -> AccountNames:
        """Names that begin with the ids of those who are known here."""
        return AccountNames(
            {one.user_id: f"{one.user_id} by name" for one in PEOPLE.values() if one.user_id in user_ids},
            {one.project_id: f"{one.project_id} by name" for one in PEOPLE.values() if one.project_id in project_ids},
        )


@dataclass
class Deployment:
    settings: Settings
    climate: Climate
    identity: Any = field(default_factory=Doorkeeper)
    compute: Any = None


def app_over(climate: Climate, home: Path) -> Flask:
    powered = replace(climate, power=power.load(home / power.FOLDER))
    return app_of(Deployment(Settings(home=home, public_url="http://here"), powered))


def hosts_of(engine: Engine, clock: Clock, count: int) -> Climate:
    """An engine over a fake cloud with `count` registered hosts."""
    known = [cloud_host(f"h{place}") for place in range(1, count + 1)]
    cloud = FakeCloud({host.name: host for host in known})
    made = Climate(engine, cloud, installed_plugins(), Settings(minutes_before_end=0), clock, lambda: 0.5)
    for host in known:
        inventory.register(made, ADMIN, host.name, {"gpu": "a100"})
    return made


@dataclass
class Person:
    """Somebody with a token; asks below /reservation/v1."""

    app: Flask
    name: str

    def __call__(self, method: str, path: str, body: Any = None, **sent: Any) -> Any:
        headers = {"X-Auth-Token": self.name, "Accept": "application/json", **sent.pop("headers", {})}
        sent = {**sent, "json": body} if body is not None else sent
        return self.app.test_client().open(V1 + path, method=method, headers=headers, **sent)

    def get(self, path: str, **sent: Any) -> Any:
        return self.done(self("GET", path, **sent))

    def lease(self, name: str = "l", **changes: Any) -> dict[str, Any]:
        """A lease of one host, tomorrow."""
        made: dict[str, Any] = self.done(self("POST", "/leases", order(name=name, **changes)), 201)["lease"]
        return made

    @staticmethod
    def done(answer: Any, status: int = 200) -> Any:
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.json


HOST = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}


def reservation(**changes: Any) -> dict[str, Any]:
    """A reservation of one host."""
    return _changed(HOST, changes)


def order(**changes: Any) -> dict[str, Any]:
    """The body that the peer's client sends for a lease."""
    body = {
        "name": "l",
        "start_date": "2030-01-02 10:00",
        "end_date": "2030-01-02 12:00",
        "before_end_date": None,
        "reservations": [HOST],
        "events": [],
    }
    return _changed(body, changes)


def _changed(body: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The body with other values; an ellipsis takes a key away."""
    return {key: value for key, value in {**body, **changes}.items() if value is not ...}


def run_due(climate: Climate) -> None:
    """What pollers and workers do."""
    while event_dispatch.claim_due(climate, "poller"):
        for message in event_dispatch.to_send(climate):
            events.run(climate, message.event_id, message.token, "worker")


def written(engine: Engine) -> dict[str, int]:
    """Rows of all tables: what must not change when something is refused."""
    with engine.connect() as conn:
        known = (leases.journal, hosts.hosts, hosts.properties, leases.idempotency_keys, leases.allocations)
        return {table.name: conn.scalar(select(func.count()).select_from(table)) or 0 for table in known}
