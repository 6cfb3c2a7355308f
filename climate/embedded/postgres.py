"""PostgreSQL as a child process: create its data once, and describe how to run it."""

import contextlib
import os
import re
import secrets
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from climate.embedded import binaries
from climate.embedded.account import Account
from climate.embedded.errors import StoreError
from climate.embedded.home import change_owner, socket_folder
from climate.embedded.postgres_account import Place, place
from climate.embedded.reaper import started_at
from climate.embedded.spawn import PLAIN_ENVIRON, Program, run_to_end
from climate.file_errors import reason_of

USER = DATABASE = "climate"
PORT = 5432
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "work_mem": "8MB",
    "random_page_cost": "1.1",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "15s",
    "deadlock_timeout": "200ms",
    "client_connection_check_interval": "1s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    # Callers get the errors of statements; this log has only messages of the server.
    "log_min_messages": "log",
    "log_checkpoints": "off",
}
"""Tuning for two cores and many short transactions; on the command line, so that the data folder has none."""

CHATTER = re.compile(
    r"LOG:  (starting PostgreSQL |listening on |database system (was shut down at|is ready to accept|is shut down)"
    r"|aborting any active transactions|shutting down$"
    r"|background worker .* exited with exit code [01]$|checkpoint (starting: shutdown|complete))"
    r"|FATAL:  terminating connection due to administrator command$"
)
"""Lines of an ordinary start or stop."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A local server: `program`, and its `url` for everybody who can read the home."""

    program: Program
    url: str
    data: Path
    sockets: Path

    def before(self) -> None:
        """Remove files of a killed server that would prevent the next start.

        The held lock excludes another server on this data. But the pid in the old file may now belong to another
        process, often so in a container. PostgreSQL would take it for a running server. The same holds for a killed
        server that nobody has reaped. Its pid is replaced by that of this process, which PostgreSQL recognises as its
        parent; the rest of the file shows whether processes of that server are left.
        """
        left_file = self.data / "postmaster.pid"
        pid = _first_line(left_file)
        if pid and _command(pid) not in ("", "postgres"):
            left_file.unlink()
        elif pid and _command(pid) and not started_at(int(pid)):
            lines = left_file.read_text(encoding="utf-8").split("\n")
            left_file.write_text("\n".join([str(os.getpid()), *lines[1:]]), encoding="utf-8")
        for left in self.sockets.glob(".s.PGSQL.*"):
            left.unlink(missing_ok=True)

    def answers(self, pid: int) -> bool:
        """Return whether the server with this pid, and no other one, accepts connections."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def settle(self) -> None:
        """Create the database if it does not exist; the server must be running."""
        import psycopg  # Imported late, because each command of `climate` would wait for it.
        from psycopg import sql

        try:
            with psycopg.connect(self.url, dbname="postgres", autocommit=True, connect_timeout=10) as conn:
                there = conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                if not there:
                    conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL on {self.data} refuses the connection: {error}") from None


def prepare(home: Path, pg_bin: str, lock: int) -> Postgres:
    """Return the server on `home`/postgres, with its data initialised.  The caller holds the lock on the home."""
    folder = home / "postgres"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700 if os.geteuid() else 0o711)
    data = folder / "data"
    where = place(_chosen(data, pg_bin).installation, folder, data)
    if not (data / "PG_VERSION").is_file():
        _initialise(folder, data, where)
    sockets = socket_folder(home, "postgres", where.account)
    return Postgres(_program(data, sockets, where, lock), _url(folder, sockets), data, sockets)


def programs(home: Path, pg_bin: str) -> Path:
    """Return the folder with the programs of the version that made the data in `home`, or that would make it."""
    return _chosen(home / "postgres" / "data", pg_bin).installation.path


def _chosen(data: Path, pg_bin: str) -> binaries.Choice:
    made_by = _first_line(data / "PG_VERSION")
    try:
        return binaries.choose_postgres(pg_bin, int(made_by) if made_by else None)
    except StoreError as error:
        raise StoreError(f"{data}: {error}" if made_by else str(error)) from None


def _program(data: Path, sockets: Path, where: Place, lock: int) -> Program:
    quoted = str(sockets).replace('"', '""')
    settings = {"unix_socket_directories": f'"{quoted}"', **SETTINGS}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return Program(
        "postgres",
        (str(where.programs / "postgres"), "-D", str(data), *options),
        PLAIN_ENVIRON,
        where.account,
        stop_signal=signal.SIGINT,
        stop_seconds=30,
        keeps=(lock,),
        data=data,
        chatter=CHATTER,
    )


def _url(folder: Path, sockets: Path) -> str:
    try:
        password = (folder / "password").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error)
        raise StoreError(
            f"{folder / 'password'} cannot be read: {why}; the password of the database is there"
        ) from None
    where = urlencode({"host": str(sockets), "port": PORT}, quote_via=quote, safe="")
    return f"postgresql://{USER}:{quote(password, safe='')}@/{DATABASE}?{where}"


def _initialise(folder: Path, data: Path, where: Place) -> None:
    """Initialise the data in a temporary folder and rename it, so that a kill leaves nothing incomplete."""
    new = folder / "data.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    change_owner(new, where.account)
    password = secrets.token_urlsafe(24)
    _write_private(folder / "password", password, None)
    _write_private(folder / "password.new", password, where.account)
    argv = (
        str(where.programs / "initdb"),
        f"--pgdata={new}",
        f"--username={USER}",
        f"--pwfile={folder / 'password.new'}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
        "--no-instructions",
    )
    try:
        run_to_end(Program("initdb", argv, PLAIN_ENVIRON, where.account, stop_signal=signal.SIGKILL), 300)
    finally:
        (folder / "password.new").unlink()
    new.rename(data)
    _sync(folder)


def _write_private(path: Path, text: str, account: Account | None) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text + "\n")
        os.fsync(file.fileno())
    change_owner(path, account)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _first_line(path: Path) -> str:
    with contextlib.suppress(OSError), path.open(encoding="utf-8") as file:
        return file.readline().strip()
    return ""


def _command(pid: str) -> str:
    """Return the program name of a living process; empty if there is none, or if the system does not report it."""
    return _first_line(Path("/proc", pid, "comm"))
