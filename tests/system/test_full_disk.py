"""A disk of the database that is really full: nothing is promised, and all processes continue when there is space.

Poller and worker write few rows, which may fit into old pages: `tests/workers/test_poller.py` and `test_tasks.py` show
that they log a full disk.
"""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from climate.bootstrap import plain_url
from tests.system.api_client import Api, host_lease
from tests.system.conftest import furnish
from tests.system.stack import Stack, await_so

HOSTS = tuple(f"full-{place}" for place in range(1, 9))
SIZE_MB = 256
"""Size of the file system of the database: a new one takes less than half of it."""

PATIENCE = 240.0
OURS = '["=", "$full", "yes"]'


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A stack whose database has a small file system of its own."""
    one = Stack(tmp_path / "home")
    furnish(one.home, HOSTS)
    folder = one.home / "postgres"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=0711", "none", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr[-200:]}")
    try:
        one.start()
        yield one
    finally:
        result = one.stop()
        (tmp_path / "said.log").write_text("\n".join(one.said), encoding="utf-8")
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    assert result == 0, one.tail()
    assert one.left() == []


def fill(file: Path) -> None:
    """Take all room that is left on the file system."""
    with file.open("ab") as filler:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(filler.fileno(), filler.seek(0, os.SEEK_END), size)


def begin_a_log_file(conn: psycopg.Connection[Any]) -> None:
    """Let Postgres continue in a new file of its write-ahead log, which has its full size from the beginning.

    With the disk full, the tables then run out of room before the log does: Postgres refuses writes and stays up.
    """
    conn.execute("SELECT pg_switch_wal()")
    conn.execute("SELECT pg_logical_emit_message(true, 'test', 'first of its file')")


def says_so(stack: Stack, process: str) -> bool:
    """Return whether a process has logged that the disk is full."""
    return any(line.startswith(process) and "disk full" in line for line in list(stack.said))


def end_the_log(conn: psycopg.Connection[Any]) -> None:
    """Write until Postgres has no room for its write-ahead log, and stops."""
    message = f"SELECT pg_logical_emit_message(false, 'test', repeat('x', 1000000)) FROM generate_series(1, {SIZE_MB})"
    with pytest.raises(psycopg.OperationalError):
        conn.execute(message)


def ask(member: Api, name: str, start: float | str, seconds: float) -> httpx.Response:
    began = time.time() if isinstance(start, str) else start
    return member.ask("POST", "/v1/leases", host_lease(name, start, began + seconds, 1, OURS))


@dataclass
class Promises:
    """Leases that were granted, by id, and the statuses of the answers."""

    member: Api
    granted: dict[str, str] = field(default_factory=dict)
    answers: Counter[int] = field(default_factory=Counter)

    def ask(self, name: str, start: float | str, seconds: float) -> int:
        answer = ask(self.member, name, start, seconds)
        self.answers[answer.status_code] += 1
        if answer.status_code == 201:
            self.granted[answer.json()["lease"]["id"]] = name
        return answer.status_code

    def statuses(self) -> dict[str, str]:
        found = {one["id"]: one for one in self.member.all_of("/v1/leases", "leases")}
        assert {one: found[one]["name"] for one in found} == self.granted, "nothing is lost, nothing is there besides"
        return {one["name"]: one["status"] for one in found.values()}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_full_disk_is_said_loses_nothing_and_all_goes_on_when_there_is_room(stack: Stack) -> None:
    admin, member = Api(stack.home, "climate"), Api(stack.home, "climate-demo")
    filler, promises = stack.home / "postgres" / "filler", Promises(member)
    # Opened before the disk is full: a new connection may have to write a file of the catalogues.
    conn = psycopg.connect(plain_url(stack.database_url), autocommit=True)
    try:
        for name in HOSTS:
            assert admin.ask("POST", "/v1/os-hosts", {"name": name, "full": "yes"}).status_code == 201
        due = time.time() + 10
        for name in HOSTS:
            assert promises.ask(f"due-{name}", due, 7200) == 201
        begin_a_log_file(conn)
        fill(filler)
        times = count(int(due) + 90_000, 300)  # one more time for each try, so that hosts are free for all of them

        def is_refused() -> bool:
            fill(filler)  # the room that Postgres has freed since
            return promises.ask("more", next(times), 60) == 507

        await_so(is_refused, PATIENCE, "a refusal for the full disk")
        await_so(lambda: says_so(stack, "web"), PATIENCE, "the disk full of web")
        for _ in range(8):  # both web processes answer, whichever of them had the failed write
            assert not httpx.get(f"{stack.url}/readyz", trust_env=False).json()["checks"]["disk"]["ok"]
        end_the_log(conn)
        for _ in range(12):  # more often than a process may die that has no such reason
            stack.await_line("is full, free some space; restarting it", PATIENCE, len(stack.said))
        filler.unlink()
        await_so(stack.is_ready, PATIENCE, "readiness with room")
        assert promises.ask("last", due + 1_800_000, 60) == 201
        started = {f"due-{name}": "ACTIVE" for name in HOSTS}
        await_so(lambda: started.items() <= promises.statuses().items(), PATIENCE, "the leases that are due")
        checked = stack.run("journal", "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr
    finally:
        conn.close()
        admin.close()
        member.close()
