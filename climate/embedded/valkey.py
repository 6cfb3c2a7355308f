"""Valkey (or Redis) as a child process; it carries only messages that can be sent again."""

import contextlib
import itertools
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from climate.embedded import binaries
from climate.embedded.home import socket_folder
from climate.embedded.spawn import PLAIN_ENVIRON, Program

SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "appendonly": "yes",
    # Rounds of its upkeep per second; the default of 10 keeps an idle server awake.
    "hz": "2",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
    "loglevel": "warning",
    "logfile": "",
}

CHATTER = re.compile(
    r"# (oO0OoO0OoO0Oo |(Redis|Valkey) (version=|is starting|is now ready to exit)|Configuration loaded"
    r"|Server initialized|WARNING Memory overcommit must be enabled|User requested shutdown"
    r"|Removing the unix socket file)|signal-handler \(\d+\) Received SIGTERM"
)
"""Lines of an ordinary start or stop; the warning concerns background saves, which are switched off."""


@dataclass(frozen=True, slots=True)
class Valkey:
    """A local server: `program`, and its `url` in the form of Redis clients (Celery uses redis+socket)."""

    program: Program
    url: str
    path: Path

    def before(self) -> None:
        """Do nothing: the server replaces the socket of a killed one by itself."""

    def answers(self, pid: int) -> bool:
        """Return whether the server with this pid, and no other one, has loaded its data and answers."""
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(1)
                one.connect(str(self.path))
                one.sendall(b"PING\r\nINFO server\r\n")
                said = _read(one)
        except OSError:
            return False
        return said.startswith(b"+PONG") and _pid(said) == pid

    def settle(self) -> None:
        """Do nothing: no further setup is needed."""


def prepare(home: Path, lock: int) -> Valkey:
    """Return the server on `home`/valkey.  The caller holds the lock on the home."""
    choice = binaries.choose_valkey()
    folder = home / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = socket_folder(home, "valkey", None) / "valkey.sock"
    _set_unreadable_aside(folder, f"{choice.installation.path.name} {choice.installation.major}")
    settings = {"unixsocket": str(path), "dir": str(folder / "data"), **SETTINGS}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    argv, data = (str(choice.installation.path), *options), folder / "data"
    program = Program("valkey", argv, PLAIN_ENVIRON, stop_seconds=10, keeps=(lock,), data=data, chatter=CHATTER)
    return Valkey(program, f"unix://{quote(str(path))}", path)


def set_aside(home: Path) -> Path | None:
    """Move unreadable data aside; the database sends every message again."""
    data = home / "valkey" / "data"
    if not data.exists():
        return None
    target = next(path for n in itertools.count(1) if not (path := data.with_name(f"unreadable-{n}")).exists())
    data.rename(target)
    data.mkdir(mode=0o700)
    return target


def _set_unreadable_aside(folder: Path, maker: str) -> None:
    """Set aside data of another program or a later version, which this one cannot read."""
    note = folder / "made-by"
    with contextlib.suppress(FileNotFoundError):
        if note.read_text(encoding="utf-8") != maker:
            set_aside(folder.parent)
    (folder / "data").mkdir(mode=0o700, exist_ok=True)
    note.write_text(maker, encoding="utf-8")


def _read(one: socket.socket) -> bytes:
    """Return the whole answer to PING and INFO, up to the process_id line."""
    said = b""
    while b"executable:" not in said and not said.startswith(b"-"):
        more = one.recv(65536)
        if not more:
            break
        said += more
    return said


def _pid(said: bytes) -> int:
    match = re.search(rb"process_id:(\d+)", said)
    return int(match[1]) if match else 0
