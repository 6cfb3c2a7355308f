"""The begin of a worker: its watch, and the first rounds that it requests."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from celery import Celery
from kombu.exceptions import OperationalError

from climate.settings import Settings
from workers import worker
from workers.celery_app import Hosts

HOSTS = Hosts("here", "there")
QUEUES = ("events", "compute.here", "network.there")


class Recording(Celery):
    """Notes the tasks that are sent, in place of a broker."""

    def __init__(self) -> None:
        super().__init__("tests", set_as_current=False)
        self.sent: list[str] = []

    def send_task(self, name: str, *_: object, **__: object) -> None:  # type: ignore[override]
        self.sent.append(name)


class Unreachable(Celery):
    """An application whose broker is killed at the moment in which a message is sent."""

    def send_task(self, *_: object, **__: object) -> NoReturn:
        raise OperationalError("Connection reset by peer")


def test_a_worker_requests_the_first_rounds_of_the_queues_that_it_reads(tmp_path: Path) -> None:
    app, settings = Recording(), Settings(home=tmp_path)
    worker.begin(app, settings, HOSTS, QUEUES, lambda *_: None)
    assert app.sent == ["climate.tend", "climate.tend_networks"]
    worker.begin(app, settings, HOSTS, ("events",), lambda *_: None)
    assert len(app.sent) == 2


def test_a_worker_that_begins_while_the_broker_dies_is_watched_all_the_same(tmp_path: Path) -> None:
    """Without the watch it records no heartbeat, and counts as dead for ever."""
    watched: list[Sequence[str]] = []
    app = Unreachable("tests", set_as_current=False)
    worker.begin(app, Settings(home=tmp_path), HOSTS, QUEUES, lambda _, queues: watched.append(queues))
    assert watched == [QUEUES]
