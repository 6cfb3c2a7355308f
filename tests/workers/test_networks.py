"""Network services are rung for when something has changed and for their beats, and each is served by one process."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest
from celery import Celery
from sqlalchemy import text
from structlog.testing import capture_logs

from climate import bootstrap
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from climate.compute.servers import create
from climate.compute.store.clock import database_time
from climate.compute.store.networks import network_hosts
from climate.compute.store.projects import flavors
from climate.settings import Settings
from climate.store.engine import connect
from tests.compute import network_factory
from tests.compute.cloud_factory import TINY, empty, request
from tests.compute.network.recorded_network import ONE, TWO
from tests.databases import unsafe
from workers import celery_app, rounds
from workers.poller import MOST_UNREAD, UNHEARD, Poller
from workers.tasks import WorkerContext

AWAY = "redis://127.0.0.1:1"


@dataclass
class Bell:
    """Where the poller rings: remembers it."""

    rung: list[tuple[str, list[Any], str, Any]] = field(default_factory=list)

    def send_task(self, name: str, args: list[Any], queue: Any, **options: Any) -> None:
        self.rung.append((name, args, queue.name, options.get("expires")))

    def taken(self) -> list[tuple[str, list[Any], str, Any]]:
        rung, self.rung = self.rung, []
        return sorted(rung, key=str)


@pytest.fixture
def database(make_database: Callable[..., str]) -> str:
    """Two networks that two hosts serve, as the database says."""
    url = unsafe(make_database())
    bootstrap.migrate(Settings(database_url=url))
    engine = connect(url, pool_size=1)
    empty(engine)
    with engine.begin() as conn:
        flavors.insert(conn, TINY)
        for number, host in enumerate((ONE, TWO)):
            made = network_factory.network(conn, f"net{number}", f"10.{number}.0.0/28", "vlan")
            conn.execute(text("UPDATE compute_networks SET host = :host WHERE id = :id"), {"host": host, "id": made})
            network_hosts.beat(conn, host, database_time(conn))
    engine.dispose()
    return url


@pytest.fixture
def desks(database: str, tmp_path: Path) -> Iterator[dict[str, WorkerContext]]:
    """A worker for each host."""
    made = {
        host: WorkerContext(Settings(database_url=database, redis_url=AWAY, home=tmp_path / host, network_host=host))
        for host in (ONE, TWO)
    }
    yield made
    for desk in made.values():
        desk.deployment.climate.engine.dispose()


@pytest.fixture
def poller(database: str, tmp_path: Path) -> Iterator[Poller]:
    settings = Settings(database_url=database, redis_url=AWAY, home=tmp_path / "poller", network_seconds=3.0)
    made = Poller(bootstrap.build(settings, pool_size=2), cast("Celery", Bell()))
    yield made
    made.deployment.climate.engine.dispose()


def bell(poller: Poller) -> Bell:
    return cast("Bell", poller.bell)


def call(desk: WorkerContext, *hosts: str) -> None:
    with desk.deployment.compute.engine.begin() as conn:
        for host in hosts:
            conn.execute(text("INSERT INTO compute_network_calls (host) VALUES (:host)"), {"host": host})


def calls(desk: WorkerContext) -> int:
    with desk.deployment.compute.engine.connect() as conn:
        return int(conn.execute(text("SELECT count(*) FROM compute_network_calls")).scalar_one())


def give_node(desk: WorkerContext) -> None:
    """Give a worker a node with room for many servers."""
    nodes_file.write(desk.settings.home, [NodeSpec("n1", 100, 10**6, 10**4)], desk.settings.nodes_file)
    desk.tend()


def served(desk: WorkerContext) -> set[str]:
    return set(desk.deployment.compute.network_drivers.on(None).standing().served)


def test_hosts_are_rung_for_once_for_all_that_has_changed(desks: dict[str, WorkerContext], poller: Poller) -> None:
    for desk in desks.values():
        desk.tend_networks()
    call(desks[ONE], ONE, ONE, TWO)
    poller.beat()
    assert bell(poller).taken() == [(celery_app.TEND_NETWORKS, [], f"network.{host}", None) for host in (ONE, TWO)]
    poller.beat()
    assert bell(poller).taken() == [], "it was rung for a moment ago"
    desks[ONE].tend_networks()
    assert calls(desks[ONE]) == 1
    desks[TWO].tend_networks()
    assert calls(desks[ONE]) == 0


@pytest.mark.parametrize("table", ["events", "compute_servers"])
def test_a_kind_of_work_that_cannot_be_read_delays_no_other(
    desks: dict[str, WorkerContext], poller: Poller, table: str
) -> None:
    for desk in desks.values():
        desk.tend_networks()
    give_node(desks[ONE])
    create.boot(desks[ONE].deployment.compute, request())
    call(desks[ONE], ONE, TWO)
    with desks[ONE].deployment.compute.engine.begin() as conn:
        conn.execute(text(f"ALTER TABLE {table} RENAME COLUMN {BROKEN[table]} TO elsewhere"))
    with capture_logs():
        poller.beat()
    assert {queue for task, _, queue, _ in bell(poller).taken() if task == celery_app.TEND_NETWORKS} == {
        f"network.{host}" for host in (ONE, TWO)
    }


BROKEN = {"events": "status", "compute_servers": "rung_at"}
"""Columns that one kind of work reads, and no other."""


def test_a_host_that_is_down_is_rung_for_its_beats_only(desks: dict[str, WorkerContext], poller: Poller) -> None:
    desks[ONE].tend_networks()
    with desks[ONE].deployment.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_network_hosts SET beat_at = beat_at - interval '1 hour'"))
    call(desks[ONE], ONE, TWO)
    poller.beat()
    assert bell(poller).taken() == []
    poller.wake_network_services()
    assert [queue for _, _, queue, _ in bell(poller).taken()] == [f"network.{host}" for host in (ONE, TWO)]


def test_messages_do_not_pile_up_for_a_host_that_is_gone(desks: dict[str, WorkerContext], poller: Poller) -> None:
    there = {f"network.{ONE}": 100, f"network.{TWO}": 100}
    poller.waiting = lambda queue: there[queue]
    with desks[ONE].deployment.compute.engine.begin() as conn:
        gone = text("UPDATE compute_network_hosts SET beat_at = beat_at - interval '1 hour' WHERE host = :host")
        conn.execute(gone, {"host": ONE})
    poller.wake_network_services()
    assert [queue for _, _, queue, _ in bell(poller).taken()] == [f"network.{TWO}"]
    there[f"network.{ONE}"] = 0
    poller.wake_network_services()
    assert [queue for _, _, queue, _ in bell(poller).taken()] == [f"network.{ONE}", f"network.{TWO}"]


def test_messages_do_not_pile_up_for_a_compute_service_that_is_gone(
    desks: dict[str, WorkerContext], poller: Poller
) -> None:
    compute, there = desks[ONE].deployment.compute, {}
    desks[ONE].tend()
    queue = f"compute.{compute.service_host}"
    poller.waiting = lambda queue: there.get(queue, 100)
    poller.wake_compute_services()
    assert [queue for _, _, queue, _ in bell(poller).taken()] == [queue]
    with compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET beat_at = beat_at - interval '1 hour'"))
    poller.wake_compute_services()
    assert bell(poller).taken() == []
    there[queue] = 0
    poller.wake_compute_services()
    assert [queue for _, _, queue, _ in bell(poller).taken()] == [queue]


def test_wake_ups_for_tasks_of_a_compute_service_that_is_gone_do_not_pile_up(
    desks: dict[str, WorkerContext], poller: Poller
) -> None:
    desk, many = desks[ONE], 2 * UNHEARD
    compute = desk.deployment.compute
    give_node(desk)
    made = create.boot(compute, request(count=many, least=many))
    queue = f"compute.{compute.service_host}"
    sent: list[Any] = []
    poller.waiting = lambda name: len(sent) if name == queue else 0

    def ring() -> int:
        """Return how many messages wait after the next beat for tasks."""
        with compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET rung_at = rung_at - interval '1 minute'"))
        poller.beat()
        sent.extend(one for one in bell(poller).taken() if one[0] == celery_app.SERVE)
        return len(sent)

    with compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET beat_at = beat_at - interval '1 hour'"))
    assert [ring() for _ in range(3)] == [UNHEARD] * 3
    sent.clear()
    desk.tend()
    assert ring() == len(made)
    assert {args[0] for _, args, _, _ in sent} == {server.id for server in made}
    sent *= MOST_UNREAD // many
    assert ring() == MOST_UNREAD, "a service that is up and does not read"


def test_wake_ups_for_rounds_and_builds_do_not_pile_up_while_no_worker_reads(poller: Poller) -> None:
    poller.waiting = lambda queue: 10 * MOST_UNREAD
    poller.wake_rounds()
    assert bell(poller).taken() == []
    poller.waiting = lambda queue: 0
    poller.wake_rounds()
    assert [task for task, _, _, _ in bell(poller).taken()] != []


def test_each_host_is_rung_for_its_beats_and_looks_at_everything_now_and_then(
    desks: dict[str, WorkerContext], poller: Poller
) -> None:
    for desk in desks.values():
        desk.tend_networks()
    for thorough in (True, False, False):
        poller.wake_network_services()
        expected = [(celery_app.TEND_NETWORKS, [thorough], f"network.{host}", 3.0) for host in (ONE, TWO)]
        assert bell(poller).taken() == expected


def test_a_broker_or_database_that_is_away_is_met_again_at_the_next_beat(database: str, tmp_path: Path) -> None:
    for url in (database, "postgresql://nobody@127.0.0.1:1/none"):
        settings = Settings(database_url=url, redis_url=AWAY, home=tmp_path)
        made = Poller(bootstrap.build(settings, pool_size=1), celery_app.connect(AWAY))
        made.wake_network_services()
        made.deployment.climate.engine.dispose()


def test_a_host_is_tended_by_one_process_at_a_time_and_others_meanwhile(desks: dict[str, WorkerContext]) -> None:
    with rounds.alone(desks[ONE].deployment.climate.engine, rounds.NETWORKS_LOCK, ONE) as mine:
        assert mine
        desks[ONE].tend_networks(True)
        desks[TWO].tend_networks(True)
        assert (len(served(desks[ONE])), len(served(desks[TWO]))) == (0, 1)
    desks[ONE].tend_networks(True)
    assert len(served(desks[ONE])) == 1


def test_two_processes_of_one_host_do_not_meet(desks: dict[str, WorkerContext]) -> None:
    desk = desks[ONE]
    wire = desk.deployment.compute.network_drivers.on(None)
    inside, together, start = [0], [0], Barrier(2)

    def look(verb: str) -> None:
        if verb == "happened":
            inside[0] += 1
            together[0] = max(together[0], inside[0])
        if verb == "translate":
            inside[0] -= 1

    wire.fails = look  # type: ignore[attr-defined]

    def tend(_: int) -> None:
        start.wait()
        desk.tend_networks(True)

    with ThreadPoolExecutor(2) as threads:
        for _ in range(5):
            list(threads.map(tend, range(2)))
    assert (together[0], inside[0]) == (1, 0)


def test_the_task_takes_what_the_poller_rings_with(desks: dict[str, WorkerContext]) -> None:
    desks[ONE].tend_networks(*[False])
    assert served(desks[ONE]) == set(), "nothing is known to have changed"
    desks[ONE].tend_networks(*[True])
    assert len(served(desks[ONE])) == 1
