"""Home of the stores: its lock, folders for sockets, and the URLs of the running stores."""

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from climate.embedded.account import Account, user_name
from climate.embedded.errors import AlreadyRunning, StoreError
from climate.embedded.reaper import started_at

LONGEST_SOCKET = 103
"""Bytes of a socket's path that every system takes."""
WEB = "web.url"
"""File in the home with the URL of the web process."""
LONGEST_NAME = len("/.s.PGSQL.5432.lock")


@dataclass(frozen=True, slots=True)
class Stores:
    """URLs of the stores.  Its text form is hidden, because the URLs have passwords."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)


@contextlib.contextmanager
def locked(home: Path, patience: float = 20.0) -> Iterator[int]:
    """Lock the home; return an open file that children inherit, so that the lock outlives this process.

    Raises AlreadyRunning at once if the process that holds the lock lives.  If only its children are still
    ending, it waits for up to `patience` seconds.
    """
    file = _open_lock(home)
    try:
        _acquire(file, home, time.monotonic() + patience)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {started_at(os.getpid())}\n".encode(), 0)
        try:
            yield file
        finally:
            _remove_far_sockets(home)
    finally:
        os.close(file)


def _open_lock(home: Path) -> int:
    try:
        home.mkdir(parents=True, exist_ok=True)
        _check_owner(home / "lock")
        return os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"{home} cannot be used as home: {error.strerror}; set CLIMATE_HOME to another folder"
        ) from None


def _check_owner(lock: Path) -> None:
    """Refuse a home of another user, because files of two users would lock out the first one."""
    with contextlib.suppress(FileNotFoundError):
        owner = lock.stat().st_uid
        if owner != os.geteuid():
            who = user_name(owner) or owner
            raise StoreError(f"{lock.parent} belongs to user {who}: start climate as {who}, or set CLIMATE_HOME")


def _acquire(file: int, home: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                raise StoreError(
                    f"{home} is on a file system without locks: {error.strerror}; set CLIMATE_HOME"
                ) from None
            owner = _owner(os.pread(file, 100, 0))
        if owner:
            raise AlreadyRunning(f"climate is already running in {home} (process {owner})")
        if time.monotonic() > deadline:
            raise AlreadyRunning(f"{home} is still held by processes of an earlier run, or by another container")
        time.sleep(0.05)


def _owner(text: bytes) -> int | None:
    words = text.split()
    if len(words) != 2 or not words[0].isdigit():
        return None
    pid = int(words[0])
    return pid if started_at(pid) == words[1].decode() else None


def change_owner(path: Path, account: Account | None) -> None:
    """Change the owner of a file to the account of the store."""
    if account:
        os.chown(path, *account.owner, follow_symlinks=False)


def socket_folder(home: Path, name: str, account: Account | None) -> Path:
    """Return a private folder for the sockets of a store: in the home, or in the temporary folder if that path is too
    long.
    """
    near = home / "run" / name
    # To PostgreSQL's clients a comma separates hosts.
    if len(os.fsencode(near)) + LONGEST_NAME <= LONGEST_SOCKET and "," not in str(near):
        near.parent.mkdir(mode=0o755, exist_ok=True)
        _restrict(near, account)
        if _takes_sockets(near):
            return near
    far = _far(home, name)
    _restrict(far, account)
    return far


def _far(home: Path, name: str) -> Path:
    mark = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"climate-{mark}-{name}")


def _remove_far_sockets(home: Path) -> None:
    """Remove this home's socket folders outside of it; folders that are not empty, or of other users, stay."""
    for name in ("postgres", "valkey"):
        with contextlib.suppress(OSError):
            _far(home, name).rmdir()


def _restrict(folder: Path, account: Account | None) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    is_now = folder.lstat()
    ours = {os.geteuid(), account.owner[0] if account else os.geteuid()}
    if not stat.S_ISDIR(is_now.st_mode) or is_now.st_uid not in ours:
        raise StoreError(f"{folder} belongs to another user; remove it or set TMPDIR to your own folder")
    folder.chmod(0o700)
    change_owner(folder, account)


def _takes_sockets(folder: Path) -> bool:
    """Return whether the folder supports sockets; shared folders of some virtual machines do not."""
    path = folder / "try"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.bind(str(path))
        except OSError:
            return False
    path.unlink()
    return True


def publish(home: Path, stores: Stores) -> None:
    """Write the URLs of the stores for other commands in this home; only the user can read the file."""
    new = home / "stores.json.new"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(stores), file)
    new.replace(home / "stores.json")


def publish_web(home: Path, url: str) -> None:
    """Write the URL of the web process for other commands in this home."""
    (home / WEB).write_text(f"{url}\n", encoding="utf-8")


def withdraw(home: Path) -> None:
    """Delete the URLs of the stores and of the web process of this home."""
    (home / "stores.json").unlink(missing_ok=True)
    (home / WEB).unlink(missing_ok=True)


def serving(home: Path) -> str | None:
    """Return the URL of the web process of a running `climate up` in this home, if there is one."""
    try:
        address = (home / WEB).read_text(encoding="utf-8").strip()
        return address if address and _owner((home / "lock").read_bytes()) else None
    except (OSError, ValueError):
        return None


def running(home: Path) -> Stores | None:
    """Return the stores of a running `climate up` in this home, if there is one."""
    try:
        stores = Stores(**json.loads((home / "stores.json").read_text(encoding="utf-8")))
        return stores if _owner((home / "lock").read_bytes()) else None
    except (OSError, ValueError, TypeError):
        return None
