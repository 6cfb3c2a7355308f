"""Databases that real Blazar filled, restored from recorded/*.sql: see recorded/README.md."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import NAMESPACE_DNS, UUID, uuid5

import psycopg

FOLDER = Path(__file__).with_name("recorded")
RELEASES = ("10.0.0", "18.0.0")


def number(name: str) -> UUID:
    """The id that recorded/fill.py gives to what has that name."""
    return uuid5(NAMESPACE_DNS, f"{name}.blazar.example")


def restore_postgresql(url: str, release: str) -> str:
    """Restore a recording into an empty database; return its URL."""
    script = (FOLDER / f"postgresql-{release}.sql").read_text(encoding="utf-8")
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute(script.encode())
    return url


HAS_MARIADB = all(map(shutil.which, ("mariadbd", "mariadb", "mariadb-install-db", "mariadb-admin")))


@contextmanager
def mariadb(folder: Path) -> Iterator[Path]:
    """A MariaDB server of its own, without a network; yield its socket."""
    data, socket = folder / "data", folder / "socket"
    plain = ("--no-defaults", f"--datadir={data}")
    made = ["mariadb-install-db", *plain, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(made, check=True, capture_output=True)
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    quiet = ("--skip-networking", "--innodb-buffer-pool-size=16M", "--skip-log-bin")
    command = ["mariadbd", *plain, f"--user={user}", f"--socket={socket}", *quiet]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        waiting = ["mariadb-admin", "--no-defaults", "-uroot", f"--socket={socket}", "--wait=600", "ping"]
        subprocess.run(waiting, check=True, capture_output=True, timeout=300)
        yield socket
    finally:
        server.terminate()
        server.wait(timeout=60)


def restore_mariadb(socket: Path, release: str) -> str:
    """Restore a recording into a database of its own; return its URL."""
    name = f"blazar_{release.replace('.', '_')}"
    client = ["mariadb", "--no-defaults", "-uroot", f"--socket={socket}"]
    subprocess.run([*client, "-e", f"CREATE DATABASE {name} CHARACTER SET utf8mb4"], check=True)
    with (FOLDER / f"mariadb-{release}.sql").open("rb") as script:
        subprocess.run([*client, name], stdin=script, check=True)
    return f"mysql://root@localhost/{name}?unix_socket={socket}"
