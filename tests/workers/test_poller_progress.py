"""Long beats show their progress to the watchdog, and a beat follows soon after an outage of the broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import Engine, text

from climate import bootstrap
from climate.database.connections import reading
from climate.service.events import event_dispatch
from climate.settings import Settings
from climate.store import metrics
from climate.store.engine import database_time
from tests.api.compute.api_clients import world
from tests.api.compute.test_full_database import full
from tests.databases import Databases, unsafe
from tests.service.host_operations.test_backlog import LEASES
from workers.poller import Poller

PATIENCE = 300.0

FEW, MANY = 5, 2 * event_dispatch.BATCH + 50


@dataclass
class Bell:
    """A broker that counts messages, and may be away."""

    is_away: bool = False
    sent: int = 0

    def send_task(self, name: str, **_: Any) -> None:
        if self.is_away:
            raise BrokerError("away")
        self.sent += 1

    def waiting(self, queue: str) -> int:
        if self.is_away:
            raise BrokerError("away")
        return self.sent


@dataclass
class Reporting(Poller):
    """Notes at each report to the watchdog how many events are claimed and how many messages are sent."""

    seen: list[tuple[int, int]] = field(default_factory=list)

    def _report_progress(self) -> None:
        super()._report_progress()
        self.seen.append((claimed(self.deployment.climate.engine), cast("Bell", self.bell).sent))


def claimed(engine: Engine) -> int:
    with engine.connect() as conn:
        return int(conn.execute(text("SELECT count(*) FROM claims")).scalar_one())


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def poller(make_database: Databases, engine_template: str, tmp_path: Path, bell: Bell) -> Iterator[Reporting]:
    url = unsafe(make_database(engine_template))
    with world(url, tmp_path):
        settings = Settings(database_url=url, redis_url="redis://127.0.0.1:1", home=tmp_path, claims_ahead=MANY)
        made = Reporting(bootstrap.build(settings, pool_size=2), cast("Any", bell), waiting=bell.waiting)
        yield made
        made.deployment.climate.engine.dispose()


def make_due(poller: Poller, count: int) -> None:
    """Write so many leases whose starts are due."""
    with poller.deployment.climate.engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        start = datetime.now(UTC) - timedelta(hours=1)
        conn.execute(text(LEASES), {"project": "p", "count": count, "start": start})


@contextmanager
def scheduled(poller: Poller) -> Iterator[None]:
    """Give the poller its beat as a job that never runs by itself."""
    poller.scheduler.start(paused=True)
    poller.scheduler.add_job(poller.beat, "interval", hours=1, id="beat")
    try:
        yield
    finally:
        poller.scheduler.shutdown()


def test_a_long_beat_reports_each_claim_and_each_message(poller: Reporting, bell: Bell) -> None:
    make_due(poller, MANY)
    poller.beat()
    assert (claimed(poller.deployment.climate.engine), bell.sent) == (MANY, MANY)
    assert (event_dispatch.BATCH, 0) in poller.seen, "after the claim, before any message"
    steps = list(zip([(0, 0), *poller.seen], poller.seen, strict=False))
    assert max(later[0] - earlier[0] for earlier, later in steps) == event_dispatch.BATCH
    assert max(later[1] - earlier[1] for earlier, later in steps) == 1


def test_only_a_claim_that_succeeded_is_recorded_for_readiness_and_metrics(poller: Reporting) -> None:
    def claimed_ago() -> float | None:
        with reading(poller.deployment.climate.engine) as conn:
            return metrics.read(conn, database_time(conn)).claimed_ago

    make_due(poller, FEW)
    with full(poller.deployment.climate.engine, "claims"):
        poller.beat()
        assert claimed_ago() is None
    poller.beat()
    ago = claimed_ago()
    assert ago is not None
    assert ago < PATIENCE


def test_a_beat_follows_within_a_second_while_the_broker_is_away(poller: Reporting, bell: Bell) -> None:
    make_due(poller, FEW)
    bell.is_away = True
    with scheduled(poller):
        for _ in range(3):
            poller.beat()
            next_run = poller.scheduler.get_job("beat").next_run_time
            assert next_run <= datetime.now(UTC) + timedelta(seconds=1)
        assert bell.sent == 0
        bell.is_away = False
        poller.beat()
    assert bell.sent == FEW
