"""A bundled cloud behind its APIs, on a port of this machine, whose compute service works."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread

from climate.cloud.bundled import BundledCloud
from climate.compute.nodes import services
from climate.context import Climate
from climate.identity import Identity
from climate.settings import Settings
from tests.api.reservation.api_clients import Deployment
from tests.compute import cloud_factory as cloud
from tests.flask_apps import app_of
from tests.identity import identity_factory as people
from tests.installed_plugins import installed_plugins
from tests.system.stack import free_port

BEAT_SECONDS = 10.0


@dataclass(frozen=True)
class Served:
    """Where its clouds.yaml is, and what is behind it."""

    home: Path
    url: str
    here: cloud.Place
    identity: Identity


@contextmanager
def served(database: str, home: Path, nodes: Sequence[str]) -> Iterator[Served]:
    """A cloud with these nodes, as after the first start; what is asked of its servers is done at once."""
    settings = Settings(home=home, port=free_port())
    specs = [cloud.node(name) for name in nodes]
    with cloud.place(database, home, specs) as here, people.place(database, home, settings) as known:
        services.furnish(here.compute)
        climate = Climate(
            here.compute.engine,
            BundledCloud(here.compute),
            installed_plugins(),
            settings,
            unknown_accounts=lambda *ids: known.identity.unknown_accounts(*ids),
        )
        app = app_of(Deployment(settings, climate, known.identity, here.compute))
        beat = partial(services.refresh, here.compute)
        with people.served(app, settings.port), repeated(here.settle), repeated(beat, BEAT_SECONDS):
            yield Served(home, settings.base_url, here, known.identity)


@contextmanager
def repeated(work: Callable[[], None], seconds: float = 0.05) -> Iterator[None]:
    """Do some work again and again beside what is inside."""
    stop = Event()

    def go() -> None:
        while not stop.wait(seconds):
            work()

    worker = Thread(target=go)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()
