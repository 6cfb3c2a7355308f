"""The poller's beats: in time, one after the other, and none lost."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import Engine, text
from structlog.testing import capture_logs

from climate import bootstrap
from climate.cloud.fake import FakeCloud
from climate.database.connections import reading
from climate.domain.errors import Unavailable
from climate.domain.status import EventKind, EventStatus
from climate.service import housekeeping, process_health
from climate.service.events import event_dispatch
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.settings import Settings
from climate.store import heartbeats
from climate.store.leases import event_claims as claims
from tests.api.compute.api_clients import world
from tests.api.compute.test_full_database import full
from tests.conftest import MEMBER
from tests.databases import Databases, unsafe
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import hosts_wanted
from tests.system.stack import await_so
from workers import celery_app
from workers.event_messages import BROKER_IS_AWAY
from workers.poller import ALL_ROUNDS_SECONDS, TIDY_SECONDS, Poller

SLOW = 1200.0
"""Seconds between ticks: who looks within `PATIENCE` was woken, however busy the machine is."""

PATIENCE = 300.0
"""Seconds to wait for a thread of the poller."""

FILES_OF_SELECT = 1024
"""Number of the first file that `select.select` cannot wait for."""


@dataclass
class Looks(Poller):
    """Notes when it looks; the first look lasts for a while and does what the test wants done meanwhile."""

    during: Callable[["Looks"], None] = lambda poller: None
    begun: list[float] = field(default_factory=list)
    together: int = 0
    again: threading.Event = field(default_factory=threading.Event)

    def _run_steps(self) -> None:
        self.begun.append(time.monotonic())
        self.together += 1
        assert self.together == 1
        if len(self.begun) == 1:
            self.during(self)
            threading.Event().wait(0.2)
        else:
            self.again.set()
        self.together -= 1


@pytest.fixture
def make(database_url: str) -> Any:
    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=SLOW)

    def made(during: Callable[[Looks], None]) -> Looks:
        deployment = bootstrap.build(settings, pool_size=2)
        return Looks(deployment, celery_app.connect(settings.redis_url), during=during)

    return made


def _looks_again(poller: Looks) -> bool:
    """Whether the poller looks a second time before the next tick."""
    thread = threading.Thread(target=poller.run)
    thread.start()
    try:
        return poller.again.wait(PATIENCE)
    finally:
        poller.stopping.set()
        thread.join()
        poller.deployment.climate.engine.dispose()


def test_what_is_due_while_a_beat_lasts_is_not_put_off_to_the_next_tick(make: Any) -> None:
    poller = make(lambda poller: poller._wake_in(timedelta(milliseconds=10)))
    assert _looks_again(poller)


def test_a_ring_while_a_beat_lasts_is_answered_after_it(make: Any, engine: Engine) -> None:
    poller = make(partial(_ring, engine))
    assert _looks_again(poller)


def _ring(engine: Engine, _: Looks) -> None:
    await_so(lambda: _listens(engine), PATIENCE, "the poller's listening")
    with engine.begin() as conn:
        claims.wake_poller(conn)


def _listens(engine: Engine) -> bool:
    with engine.connect() as conn:
        found = conn.scalar(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'climate-listen' AND state = 'idle' AND query LIKE 'LISTEN%'"
            )
        )
    return bool(found)


def test_a_poller_with_many_open_files_hears_rings(make: Any, engine: Engine) -> None:
    with ExitStack() as files:
        for _ in range(FILES_OF_SELECT):
            files.enter_context(Path(os.devnull).open())
        assert _looks_again(make(partial(_ring, engine)))


@pytest.mark.parametrize("trouble", [Unavailable(), OSError("no way")])
def test_trouble_with_the_stores_does_not_end_a_poller(make: Any, trouble: Exception) -> None:
    def fail(_: Looks) -> None:
        raise trouble

    poller = make(fail)
    poller.last_beat = 0
    poller.beat()
    assert poller.last_beat > 0
    poller.deployment.climate.engine.dispose()


@dataclass
class Hangs(Looks):
    """A child zone lets the poll hang until the test is over."""

    hanging: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def poll_zones(self) -> None:
        self.hanging.set()
        self.over.wait()


def test_child_zone_that_hangs_delays_no_beat(database_url: str) -> None:
    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=0.1)
    poller = Hangs(bootstrap.build(settings, pool_size=2), celery_app.connect(settings.redis_url))
    thread = threading.Thread(target=poller.run)
    thread.start()
    try:
        assert poller.hanging.wait(PATIENCE)
        seen = len(poller.begun)
        await_so(lambda: len(poller.begun) > seen + 2, PATIENCE, "beats while the poll hangs")
    finally:
        poller.over.set()
        poller.stopping.set()
        thread.join()
        poller.deployment.climate.engine.dispose()


def test_trouble_of_one_chore_keeps_no_other_from_being_done(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []

    class Chores(Poller):
        def _sweep_builds(self) -> None:
            done.append("builds")

    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1")
    poller = Chores(bootstrap.build(settings, pool_size=1), celery_app.connect(settings.redis_url))
    with poller.deployment.climate.engine.begin() as conn:
        conn.execute(text("ALTER TABLE notices RENAME TO elsewhere"))
    try:
        poller.do_housekeeping()
    finally:
        with poller.deployment.climate.engine.begin() as conn:
            conn.execute(text("ALTER TABLE elsewhere RENAME TO notices"))
        poller.deployment.climate.engine.dispose()
    assert done == ["builds"]
    assert "expired rows not deleted" in capsys.readouterr().out


def test_expired_rows_are_deleted_once_a_minute_and_causes_of_pools_corrected_each_time(idle: Poller) -> None:
    idle.do_housekeeping()
    with counted(idle.deployment.climate.engine) as seen:
        idle.do_housekeeping()
    assert not [statement for statement in seen if statement.startswith("DELETE")], seen
    assert [statement for statement in seen if "pool_cause" in statement and "UPDATE" in statement]
    idle.tidied -= TIDY_SECONDS
    with counted(idle.deployment.climate.engine) as seen:
        idle.do_housekeeping()
    assert len([statement for statement in seen if statement.startswith("DELETE")]) >= len(housekeeping.OLD) - 1


def test_expired_rows_that_could_not_be_deleted_are_tried_again_with_the_next_chores(idle: Poller) -> None:
    engine = idle.deployment.climate.engine
    with engine.begin() as conn:
        conn.execute(text("ALTER TABLE notices RENAME TO elsewhere"))
    idle.do_housekeeping()
    with engine.begin() as conn:
        conn.execute(text("ALTER TABLE elsewhere RENAME TO notices"))
    for is_tried in (True, False):
        with counted(engine) as seen:
            idle.do_housekeeping()
        assert bool([statement for statement in seen if statement.startswith("DELETE FROM notices")]) == is_tried


def test_rings_for_services_wait_for_no_chore(database_url: str) -> None:
    rung, over = threading.Event(), threading.Event()

    class Lasts(Poller):
        def do_housekeeping(self) -> None:
            over.wait()

        def wake_compute_services(self) -> None:
            rung.set()

    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=SLOW)
    poller = Lasts(bootstrap.build(settings, pool_size=1), celery_app.connect(settings.redis_url))
    thread = threading.Thread(target=poller.run)
    thread.start()
    try:
        assert rung.wait(PATIENCE)
    finally:
        over.set()
        poller.stopping.set()
        thread.join()
        poller.deployment.climate.engine.dispose()


def test_jobs_go_on_when_the_clock_of_the_machine_is_set_back(database_url: str) -> None:
    """A clock that was set back by an hour finds all jobs an hour away."""
    ahead, looked, watched = [0.0], threading.Event(), threading.Event()

    def wall() -> float:
        moment = time.time() + ahead[0]
        watched.set()
        return moment

    class Looking(Poller):
        def _run_steps(self) -> None:
            looked.set()

    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=SLOW)
    poller = Looking(
        bootstrap.build(settings, pool_size=1),
        celery_app.connect(settings.redis_url),
        wall=wall,
    )
    thread = threading.Thread(target=poller.run)
    thread.start()
    try:
        assert looked.wait(PATIENCE)
        assert watched.wait(PATIENCE), "a change before the first look at the clock is none"
        jobs = await_jobs(poller)
        for job in jobs:
            poller._wake_in(timedelta(hours=1), job)
        looked.clear()
        ahead[0] = -3600.0
        assert looked.wait(PATIENCE)
        await_so(lambda: _all_within(poller, timedelta(seconds=SLOW)), PATIENCE, "all jobs")
    finally:
        poller.stopping.set()
        thread.join()
        poller.deployment.climate.engine.dispose()


class Bell:
    """A broker that counts the messages for each task, and may be away."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.is_away = False

    def send_task(self, name: str, **_: Any) -> None:
        if self.is_away:
            raise BrokerError("away")
        self.sent[name] += 1


@pytest.fixture
def bell(idle: Poller) -> Bell:
    """The broker of a poller over a quiet deployment, which has just sent a message for all rounds."""
    made = Bell()
    idle.bell = cast("Any", made)
    idle.wake_rounds()
    assert made.sent == {celery_app.TEND_POOLS: 1}
    made.sent.clear()
    return made


def test_rounds_are_not_woken_without_work_but_for_all_of_them_from_time_to_time(idle: Poller, bell: Bell) -> None:
    for _ in range(3):
        idle.wake_rounds()
    assert bell.sent == {}
    idle.rounds_at -= ALL_ROUNDS_SECONDS
    for _ in range(3):
        idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 1}


def test_rounds_are_woken_as_long_as_there_is_work(idle: Poller, bell: Bell) -> None:
    with idle.deployment.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = false"))
    for _ in range(3):
        idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 3}
    with idle.deployment.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = true"))
    idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 3}


def test_rounds_that_were_asked_for_are_woken_when_the_broker_is_back(idle: Poller, bell: Bell) -> None:
    bell.is_away = True
    idle.rounds_asked.set()
    idle.wake_rounds()
    bell.is_away = False
    idle.wake_rounds()
    idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 1}


def test_rounds_are_woken_while_the_database_cannot_tell_whether_they_have_work(idle: Poller, bell: Bell) -> None:
    with idle.deployment.climate.engine.begin() as conn:
        conn.execute(text("ALTER TABLE cleanings RENAME TO locked_away"))
    idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 1, celery_app.TEND_OUTSIDE: 1}


def test_rounds_over_another_cloud_are_always_woken(idle: Poller, bell: Bell) -> None:
    """Its hosts are not in the database."""
    idle.deployment = replace(idle.deployment, climate=replace(idle.deployment.climate, cloud=FakeCloud()))
    for _ in range(3):
        idle.wake_rounds()
    assert bell.sent == {celery_app.TEND_POOLS: 3}


def _all_within(poller: Poller, time: timedelta) -> bool:
    """Whether all jobs of a poller run within a time from now."""
    return all(job.next_run_time <= datetime.now(UTC) + time for job in poller.scheduler.get_jobs())


def await_jobs(poller: Poller) -> set[str]:
    """The jobs of a poller that runs."""
    names = {"beat", "refill", "services", "chores", "beats", "rounds", "zones"}
    await_so(lambda: {job.id for job in poller.scheduler.get_jobs()} == names, PATIENCE, "the jobs of the poller")
    return names


@pytest.fixture
def idle(make_database: Databases, engine_template: str, tmp_path: Path) -> Iterator[Poller]:
    """A poller over a bundled cloud, without a broker."""
    url = unsafe(make_database(engine_template))
    with world(url, tmp_path):
        settings = Settings(database_url=url, redis_url="redis://127.0.0.1:1", home=tmp_path, minutes_before_end=0)
        poller = Poller(bootstrap.build(settings, pool_size=2), celery_app.connect(settings.redis_url))
        yield poller
        poller.deployment.climate.engine.dispose()


def test_a_beat_with_nothing_to_do_takes_few_statements(idle: Poller) -> None:
    idle._run_steps()  # the first one shows life
    with counted(idle.deployment.climate.engine) as seen:
        idle._run_steps()
    assert len(seen) <= 5, seen


def test_what_is_due_is_claimed_by_a_beat_that_finds_it(idle: Poller) -> None:
    climate = idle.deployment.climate
    idle._run_steps()
    end = datetime.now(UTC) + timedelta(hours=1)
    lease = leases.create(climate, MEMBER, LeaseRequest("l", None, end, None, [hosts_wanted()]))
    with suppress(*BROKER_IS_AWAY):
        idle._run_steps()
    assert leases.get(climate, MEMBER, lease.id).event(EventKind.START).status is EventStatus.IN_PROGRESS
    assert not event_dispatch.pending_work(climate).is_quiet, "an event that is claimed is not left alone"


def test_poller_logs_a_full_disk_and_claims_when_there_is_space(idle: Poller) -> None:
    climate = idle.deployment.climate
    end = datetime.now(UTC) + timedelta(hours=1)
    lease = leases.create(climate, MEMBER, LeaseRequest("l", None, end, None, [hosts_wanted()]))
    with full(climate.engine, "claims"), capture_logs() as seen:
        idle.beat()
        idle.beat()
    assert [one["disk"] for one in seen if one["event"].startswith("disk full")] == ["the disk of the database"]
    idle.beat()
    assert leases.get(climate, MEMBER, lease.id).event(EventKind.START).status is EventStatus.IN_PROGRESS


def test_a_poller_that_has_filled_a_queue_has_caught_up(idle: Poller) -> None:
    climate = replace(idle.deployment.climate, settings=replace(idle.deployment.settings, claims_ahead=1))
    idle.deployment = replace(idle.deployment, climate=climate)
    end = datetime.now(UTC) + timedelta(hours=1)
    for _ in range(2):
        leases.create(climate, MEMBER, LeaseRequest("l", None, end, None, [hosts_wanted()]))
    with suppress(*BROKER_IS_AWAY):
        idle._run_steps()
    assert idle.cursor.full
    with reading(climate.engine) as conn:
        assert heartbeats.latest(conn, process_health.CAUGHT_UP) is not None


def test_a_quiet_deployment_has_no_full_queues(idle: Poller) -> None:
    idle.cursor.full = frozenset({"events"})
    idle._run_steps()
    assert idle.cursor.full == frozenset()


def test_a_poller_at_rest_wakes_for_what_is_due_before_it_would_look(idle: Poller) -> None:
    climate = idle.deployment.climate
    start = datetime.now(UTC) + timedelta(hours=1)
    leases.create(climate, MEMBER, LeaseRequest("l", start, start + timedelta(hours=1), None, [hosts_wanted()]))
    rest = event_dispatch.pending_work(climate)
    assert rest.is_quiet
    assert rest.wait is not None
    assert timedelta(minutes=30) < rest.wait <= timedelta(hours=1)
    later = event_dispatch.pending_work(replace(climate, now=lambda conn: start))
    assert (later.is_quiet, later.wait) == (False, timedelta(hours=1))
