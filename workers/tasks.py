"""The tasks: two lines each, over the verbs of the engine and of the bundled cloud."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import structlog
from celery import Celery

from climate import bootstrap
from climate.bootstrap import Deployment
from climate.compute import lifecycle, services
from climate.service import events
from climate.settings import Settings
from workers.doorbell import RUN_EVENT, SERVE, TEND

log = structlog.get_logger(__name__)


@dataclass
class Desk:
    """What one worker process works with: built where it is first needed, hence after the fork."""

    settings: Settings

    @cached_property
    def deployment(self) -> Deployment:
        return bootstrap.build(self.settings, application="climate-worker", pool_size=3)

    @cached_property
    def name(self) -> str:
        return f"worker:{socket.gethostname()}:{os.getpid()}"

    def run_event(self, event_id: str, token: int) -> None:
        events.run(self.deployment.climate, UUID(event_id), int(token), self.name)

    def serve(self, server_id: str) -> None:
        lifecycle.carry_out(self.deployment.compute, str(UUID(server_id)))

    def tend(self) -> None:
        """Report the nodes of this compute service, and put right what happened to its servers."""
        services.refresh(self.deployment.compute)
        lifecycle.reconcile(self.deployment.compute)


def register(app: Celery, desk: Desk) -> None:
    """Give the application its tasks.  Errors are logged only: the database knows what is still to be done."""
    tasks: dict[str, Callable[..., None]] = {RUN_EVENT: desk.run_event, SERVE: desk.serve, TEND: desk.tend}
    for name, work in tasks.items():
        app.task(_guarded(name, work), name=name)


def _guarded(name: str, work: Callable[..., None]) -> Callable[..., None]:
    def task(*args: object) -> None:
        try:
            work(*args)
        except Exception:
            log.exception("task failed", task=name, args=[str(arg)[:60] for arg in args])

    task.__name__ = name.rpartition(".")[2]
    return task
