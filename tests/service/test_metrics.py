"""What operators read on their curves is what there is."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from kombu import Connection as Broker
from sqlalchemy import text

from climate import embedded
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.service import broker_health, process_health, readiness
from climate.service.events import event_dispatch
from climate.settings import Settings
from climate.store import metrics
from climate.store.leases import due_events
from climate.store.metrics import Figures
from tests.conftest import Clock
from tests.service import lease_actions
from tests.service.waiting_list.test_entries import ALL, queue


def read(climate: Climate) -> Figures:
    with climate.engine.connect() as conn:
        return metrics.read(conn, climate.now(conn))


def test_an_engine_at_rest(climate: Climate) -> None:
    assert read(climate) == Figures(0, 0.0, 0, 0, 0, None, {})


def test_from_due_to_done(climate: Climate, clock: Clock) -> None:
    for _ in range(3):
        lease_actions.make(climate, clock, start=1, hours=2)
    assert read(climate).due == 0
    clock.forward(hours=1, seconds=7)
    assert read(climate) == Figures(
        due=3, oldest_due=7.0, in_progress=0, failed=0, retrying=0, claimed_ago=None, lateness={}
    )
    messages = lease_actions.claim(climate)
    assert read(climate) == Figures(0, 0.0, 3, 0, 0, None, {0.5: 7.0, 0.99: 7.0, 1.0: 7.0})
    for message in messages:
        lease_actions.run(climate, message)
    assert read(climate) == Figures(0, 0.0, 0, 0, 0, None, {0.5: 7.0, 0.99: 7.0, 1.0: 7.0})
    clock.forward(minutes=6)
    assert read(climate).lateness == {}


def test_events_of_a_lease_in_the_waiting_list_are_not_due_until_it_has_its_resources(
    climate: Climate, clock: Clock
) -> None:
    lease_actions.make(climate, clock, lease_actions.hosts_wanted(ALL), start=0, hours=20)
    lease_actions.run_due(climate)
    queue(climate, clock, start=1, hours=2, until=10)
    clock.forward(hours=9)
    assert (read(climate).due, read(climate).oldest_due) == (0, 0.0)
    with climate.engine.connect() as conn:
        assert due_events.oldest(conn, clock.time) is None
        assert process_health.check_events(conn, clock.time).detail == "none is due"
    clock.forward(hours=1, seconds=3)
    assert (read(climate).due, read(climate).oldest_due) == (1, 3.0)
    with climate.engine.connect() as conn:
        assert due_events.oldest(conn, clock.time) == clock.time - timedelta(seconds=3)


def test_retries_and_dead_letters(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease_actions.make(climate, clock, start=1, hours=2)
    cloud.broken = True
    clock.forward(hours=1)
    (message,) = lease_actions.claim(climate)
    lease_actions.run(climate, message)
    assert (read(climate).retrying, read(climate).failed) == (1, 0)
    clock.forward(minutes=10)
    (message,) = lease_actions.claim(climate)
    assert (read(climate).in_progress, read(climate).retrying) == (1, 1)
    lease_actions.run(climate, message)
    while event_dispatch.next_due(climate) is not None and read(climate).failed == 0:
        clock.forward(minutes=10)
        lease_actions.run_due(climate)
    assert (read(climate).retrying, read(climate).failed) == (0, 1)


@pytest.fixture(scope="module")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("stores")
    with embedded.run(home, Settings(home=home, database_url="postgresql://unused")) as stores:
        yield stores.redis_url


def test_queues_are_as_long_as_they_are(broker_url: str) -> None:
    assert broker_health.answers(broker_url)
    assert broker_health.queues(broker_url) == {}
    prefixed = {"global_keyprefix": "climate:"}
    with Broker(broker_url.replace("unix:", "redis+socket:", 1), transport_options=prefixed) as connection:
        for queue, count in (("events", 3), ("events.physical:host", 1), ("idle", 0)):
            channel = connection.SimpleQueue(queue)
            for number in range(count):
                channel.put({"number": number})
            channel.close()
    assert broker_health.queues(broker_url) == {"events": 3, "events.physical:host": 1, "idle": 0}


@pytest.mark.parametrize("url", ["", "nonsense", "redis://127.0.0.1:1/0", "redis+socket:///nowhere/socket"])
def test_a_broker_that_is_away(url: str) -> None:
    assert not broker_health.answers(url)
    assert broker_health.queues(url) == {}


def test_a_migrated_database_is_at_head(climate: Climate) -> None:
    with climate.engine.connect() as conn:
        assert not readiness.check_migrations(conn).ok
        wanted = readiness.newest_migrations()
        conn.execute(text("CREATE TEMP TABLE alembic_version (version_num text)"))
        for revision in wanted:
            conn.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})
        assert readiness.check_migrations(conn).ok
        conn.execute(text("INSERT INTO alembic_version VALUES ('another')"))
        assert not readiness.check_migrations(conn).ok
