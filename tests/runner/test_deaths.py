"""Deaths of all kinds: of the runner, its stores, its guard; nothing is left behind and nothing is lost."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from redis import Redis, RedisError

from climate import embedded
from climate.embedded.reaper import started_at
from tests.runner.conftest import WEB, Begin, Runner, idle, nothing_left_of
from tests.system.stack import await_so

pytestmark = pytest.mark.slow

OWN_STORES: dict[str, str] = {}


@pytest.fixture
def server(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, as a driver starts servers; it is no child of the runner."""
    process = subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def record(home: Path, name: str, text: str) -> None:
    (home / "servers" / name).mkdir(parents=True)
    (home / "servers" / name / "pid").write_text(text, encoding="ascii")


def store(runner: Runner, name: str) -> psutil.Process:
    """The process of a store."""
    children = psutil.Process(runner.process.pid).children()
    return next(child for child in children if any(name in word for word in words(child)[:2]))


def words(process: psutil.Process) -> list[str]:
    """What a process was called with; nothing of one that has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def answers(redis: Redis) -> bool:
    """Whether it does; it may be about to begin."""
    try:
        return bool(redis.ping())
    except RedisError:
        return False


def test_a_runner_that_is_killed_leaves_nothing_and_can_begin_again_at_once(begin: Begin) -> None:
    for _ in range(2):
        runner = begin(WEB, idle("poller"), idle("worker", "stubborn"), environ=OWN_STORES).ready()
        runner.pid_of("worker")
        family = runner.family()
        assert any("postgres" in process.name() for process in family)

        runner.process.kill()
        runner.process.wait()

    assert nothing_left_of(family)


def test_stores_that_are_killed_are_back_on_the_same_data(begin: Begin, home: Path) -> None:
    runner = begin(WEB, idle("worker"), environ=OWN_STORES).ready()
    assert not [line for line in runner.lines if line.startswith(("postgres", "valkey"))]
    stores = embedded.running(home)
    assert stores
    with psycopg.connect(stores.database_url, autocommit=True) as conn:
        conn.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    for name in ("postgres", "unixsocket:"):
        store(runner, name).kill()
    runner.wait_for("^postgres was ended by SIGKILL; restarting it$")
    runner.wait_for("^valkey was ended by SIGKILL; restarting it$")
    runner.wait_for("database system is ready to accept connections")

    with psycopg.connect(stores.database_url) as conn:
        assert conn.execute("SELECT answer FROM kept").fetchone() == (42,)
    with Redis.from_url(stores.redis_url) as redis:
        await_so(lambda: answers(redis), 30, "the answer of what was started again")
    family = runner.family()
    assert runner.end() == 0
    assert nothing_left_of(family)
    assert embedded.running(home) is None


def test_processes_end_before_the_stores(begin: Begin) -> None:
    runner = begin(WEB, idle("worker"), environ=OWN_STORES).ready()
    runner.pid_of("worker")

    assert runner.end() == 0

    ends = [line for line in runner.lines if "worker ends" in line or "shutdown request" in line]
    assert ["worker" in line for line in ends] == [True, False]


def test_a_guard_that_is_killed_is_replaced_by_one_that_knows_all(begin: Begin) -> None:
    runner = begin(WEB, idle("worker", "stubborn")).ready()
    runner.pid_of("worker")
    guard = next(process for process in runner.family() if any("reaper.py" in word for word in words(process)))
    guard.kill()
    runner.wait_for("^the reaper was killed and has been restarted$")
    family = runner.family()

    runner.process.kill()
    runner.process.wait()

    assert nothing_left_of(family)


@pytest.mark.parametrize("way", ["Ctrl-C", "kill"])
def test_recorded_servers_end_with_the_runner_however_it_ends(
    begin: Begin, home: Path, server: subprocess.Popen[bytes], way: str
) -> None:
    runner = begin(WEB).ready()
    record(home, "one", f"{server.pid} {started_at(server.pid)}\n")
    group = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]

    if way == "kill":
        runner.process.kill()
        runner.process.wait()
    else:
        assert runner.end() == 0

    assert nothing_left_of(group)


def test_a_process_that_only_has_the_pid_of_a_recorded_server_lives_on(
    begin: Begin, home: Path, server: subprocess.Popen[bytes]
) -> None:
    runner = begin(WEB).ready()
    record(home, "other", f"{server.pid} {int(started_at(server.pid)) - 1}\n")
    for name, text in (
        ("empty", ""),
        ("words", "a b"),
        ("init", f"1 {started_at(1)}"),
        ("all", "-1 0"),
        ("half", "12"),
    ):
        record(home, name, text)

    assert runner.end() == 0

    assert server.poll() is None
