"""A bundled cloud at the other end of a wire: what the port over HTTP is tried on."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flask import request
from flask.wrappers import Response

from climate import plugin
from climate.cloud import Cloud, openstack
from climate.cloud.bundled import BundledCloud
from climate.compute import Compute
from climate.compute.store.tables import metadata
from climate.context import Climate
from climate.settings import Settings
from climate.store.engine import connect
from tests.api.reservation.api_clients import Deployment
from tests.flask_apps import app_of
from tests.identity import identity_factory as people
from tests.system.stack import free_port


@dataclass
class Remote:
    """A served app, whose cloud can be exchanged, and the port over it."""

    database: str
    deployment: Deployment
    settings: Settings
    cloud: Cloud
    done: "Counter[str]" = field(default_factory=Counter)
    """Actions that were accepted, by their names; `delete` for deletions of servers."""

    def ask(self, method: str, path: str, body: Any) -> None:
        """Ask its compute service for something, as the administrator."""
        connection = self.cloud.remote.connection  # type: ignore[attr-defined]
        answer = connection.compute.request(path, method, json=body)
        assert answer.ok, answer.text

    def over(self, compute: Compute) -> None:
        """Serve this cloud from now on."""
        self.deployment.compute = compute
        self.deployment.climate = Climate(compute.engine, BundledCloud(compute), plugin.load(), self.settings)
        self.done.clear()


@contextmanager
def remote(database: str, home: Path) -> Iterator[Remote]:
    """A deployment with users of its own, on a free port of this machine."""
    settings = Settings(home=home, port=free_port())
    _make_tables(database)
    with people.place(database, home, settings) as known:
        deployment = Deployment(settings, replace(known.climate, plugins=plugin.load()), known.identity)
        done: Counter[str] = Counter()
        app = app_of(deployment)
        app.after_request(_count(done))
        with people.served(app, settings.port):
            yield Remote(database, deployment, settings, openstack.of("climate", str(home / "clouds.yaml")), done)


def _make_tables(database: str) -> None:
    engine = connect(database, pool_size=1)
    metadata.create_all(engine)
    engine.dispose()


def _count(done: "Counter[str]") -> Callable[[Response], Response]:
    def note(answer: Response) -> Response:
        if answer.status_code in (202, 204) and request.path.startswith("/compute/v2.1/servers/"):
            is_action = request.path.endswith("/action")
            done.update(list(request.get_json()) if is_action else [request.method.lower()])
        return answer

    return note
