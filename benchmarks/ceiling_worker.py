"""The ceiling of due events: tasks through the same Celery that do nothing, or one UPDATE and its commit."""

import os
import sys
import time
from uuid import uuid4

import redis
from sqlalchemy import text

from benchmarks import processes
from climate.service.events.event_shares import QUEUE
from climate.settings import Settings
from climate.store.engine import connect
from workers import celery_app, worker
from workers.tasks import WorkerContext

KINDS = ("noop", "update")
DONE = "ceiling:done"
"""The key in Redis that counts the tasks that are done."""
PATIENCE = 120.0

_TABLE = text("CREATE TABLE IF NOT EXISTS ceiling_events (id uuid PRIMARY KEY, status text NOT NULL)")
_ROWS = text("INSERT INTO ceiling_events SELECT unnest(CAST(:ids AS uuid[])), 'UNDONE'")
_DONE = text("UPDATE ceiling_events SET status = 'DONE' WHERE id = :id")


class NoOperation(WorkerContext):
    """Counts the events that it is asked to run."""

    def run_event(self, event_id: str, token: int) -> None:
        self.counter.incr(DONE)

    @property
    def counter(self) -> "redis.Redis":
        """The connection of this process; its client opens one anew after a fork."""
        if "_counter" not in self.__dict__:
            self.__dict__["_counter"] = redis.Redis.from_url(self.settings.redis_url)
        return self.__dict__["_counter"]  # type: ignore[no-any-return]


class Update(NoOperation):
    """Updates one row for each event, and counts."""

    def run_event(self, event_id: str, token: int) -> None:
        with self.deployment.climate.engine.begin() as conn:
            conn.execute(_DONE, {"id": event_id})
        super().run_event(event_id, token)


def rate(settings: Settings, kind: str, count: int) -> float:
    """Return how many tasks a second the worker processes do, from the first one that is sent to the last one done."""
    ids = [str(uuid4()) for _ in range(count)]
    engine = connect(settings.database_url, pool_size=1)
    with engine.begin() as conn:
        conn.execute(_TABLE)
        conn.execute(_ROWS, {"ids": ids})
    engine.dispose()
    counter = redis.Redis.from_url(settings.redis_url)
    app = celery_app.connect(settings.redis_url)
    with processes.running(settings, f"benchmarks.ceiling_worker {kind}"):
        warm = settings.worker_processes * 20
        _send(app, [str(uuid4()) for _ in range(warm)])  # connections are opened once
        _await(counter, warm)
        counter.set(DONE, 0)
        begun = time.perf_counter()
        _send(app, ids)
        _await(counter, count)
        took = time.perf_counter() - begun
    counter.delete(DONE)
    return count / took


def _send(app: object, ids: list[str]) -> None:
    for one in ids:
        celery_app.send(app, celery_app.RUN_EVENT, [one, 1], QUEUE, expires=PATIENCE)  # type: ignore[arg-type]


def _await(counter: "redis.Redis", count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while int(counter.get(DONE) or 0) < count:  # type: ignore[arg-type]
        if time.monotonic() > deadline:
            raise TimeoutError(f"of {count} tasks, {counter.get(DONE)!r} are done after {PATIENCE:g} s")
        time.sleep(0.005)


if __name__ == "__main__":
    given = Settings.from_env(os.environ)
    sys.exit(worker.main(given, {"noop": NoOperation, "update": Update}[sys.argv[1]](given)))
