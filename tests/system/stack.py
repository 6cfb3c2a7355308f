"""`climate up` as a child of the tests: started, watched, hurt, stopped, and looked for afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

START_SECONDS = 600.0
STOP_SECONDS = 90.0
COMMAND_SECONDS = 600.0
LONGEST_PAUSE = 0.4
"""Seconds between two looks at what is waited for."""
CLIMATE = (sys.executable, "-m", "climate")
ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def await_so(look: Callable[[], T], seconds: float, what: str) -> T:
    """The first answer of `look` that is true; AssertionError with `what` and the last answer after `seconds`."""
    deadline, pause = time.monotonic() + seconds, 0.05
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what} took longer than {seconds:g} s: {seen!r}"
        threading.Event().wait(pause)
        pause = min(LONGEST_PAUSE, pause * 1.4)
    return seen


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@dataclass
class Stack:
    """One home with its `climate up`, which may be started and stopped several times."""

    home: Path
    more: Mapping[str, str] = field(default_factory=dict)
    """Further settings, as in the environment."""
    packages: tuple[Path, ...] = ()
    """Folders with further packages that are installed beside climate."""
    port: int = field(default_factory=free_port)
    program: tuple[str, ...] = CLIMATE
    """Words of the command `climate`; the one of this Python unless an installed one is tried."""
    folder: Path = ROOT
    """Folder in which its commands run."""
    arguments: tuple[str, ...] = ("--demo",)
    """Arguments of `climate up`."""
    said: list[str] = field(default_factory=list)
    _process: "subprocess.Popen[str] | None" = None
    _reader: threading.Thread | None = None
    _news: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def environ(self) -> dict[str, str]:
        """What commands find in their environment to work with this stack."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLIMATE_", "OS_"))}
        ours = {"CLIMATE_HOME": str(self.home), "CLIMATE_PORT": str(self.port)}
        clouds = {"OS_CLIENT_CONFIG_FILE": str(self.home / "clouds.yaml")}
        path = os.pathsep.join(filter(None, (*map(str, self.packages), kept.get("PYTHONPATH"))))
        plain = {"PYTHONPATH": path, "NO_COLOR": "1", "CLIMATE_LOG_FORMAT": "json"}
        return {**kept, **ours, **clouds, **plain, **self.more}

    def start(self) -> None:
        """Start, and wait until everything answers."""
        self.begin()
        self.await_line("climate is ready at", START_SECONDS)
        await_so(self.is_ready, START_SECONDS, "readiness")

    def begin(self) -> None:
        """Start without waiting."""
        self.said.clear()
        self._process = subprocess.Popen(
            [*self.program, "up", *self.arguments],
            env=self.environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                with self._news:
                    self.said.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def await_line(self, text: str, seconds: float, after: int = 0) -> str:
        """The first line with `text` among those said since the first `after`; waits for it."""

        def found() -> str | None:
            return next((line for line in self.said[after:] if text in line), None)

        with self._news:
            over = self._news.wait_for(lambda: found() or not self._alive(), seconds)
            line = found()
        assert over, f"{text!r} was not said within {seconds:g} s:\n" + self.tail()
        assert line, "the stack ended:\n" + self.tail()
        return line

    def hears(self, text: str, seconds: float, after: int) -> bool:
        """Whether a line with `text` is said within so many seconds, behind the first `after` lines."""
        with self._news:
            return self._news.wait_for(lambda: any(text in line for line in self.said[after:]), seconds)

    def _alive(self) -> bool:
        return self._reader is not None and self._reader.is_alive()

    def tail(self, lines: int = 40) -> str:
        return "\n".join(line[:600] for line in self.said[-lines:])

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=10, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Ask for the end, and wait for it; the exit status."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            result = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError("climate up did not end:\n" + self.tail()) from None
        if self._reader:
            self._reader.join(10)
        return result

    def left(self) -> list[str]:
        """Processes that have to do with this home: those of the stack, whoever their parent is by now."""
        own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        return [_words(one) for one in psutil.process_iter() if one.pid not in own and self._belongs(one)]

    def _belongs(self, one: psutil.Process) -> bool:
        home = str(self.home)
        with suppress(psutil.Error, OSError):
            if one.status() != psutil.STATUS_ZOMBIE and home in " ".join(one.cmdline()):
                return True
            if one.environ().get("CLIMATE_HOME") == home:
                return True
            return bool(one.cwd().startswith(home))
        return False

    def find(self, role: str) -> list[psutil.Process]:
        """The living processes of a role: web, poller, worker, postgres, valkey, reaper, or `web child` and so on."""
        name, _, child = role.partition(" ")
        with suppress(psutil.Error):
            heads = [one for one in psutil.Process(self.pid).children() if _is(one, name)]
            return [below for head in heads for below in head.children()] if child else heads
        return []

    def run(self, *words: str, seconds: float = COMMAND_SECONDS) -> "subprocess.CompletedProcess[str]":
        """A `climate` command against this stack."""
        return self.command(*self.program, *words, seconds=seconds)

    def command(
        self, *argv: str, seconds: float = COMMAND_SECONDS, more: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Any program, with the environment of this stack."""
        environ = {**self.environ, **(more or {})}
        return subprocess.run(
            argv, env=environ, cwd=self.folder, capture_output=True, text=True, timeout=seconds, check=False
        )

    def logged(self, event: str) -> Iterator[dict[str, Any]]:
        """The lines of the structured log that tell of an event."""
        for line in list(self.said):
            if f'"event": "{event}"' in line:
                with suppress(ValueError):
                    yield json.loads(line.partition("|")[2])

    @property
    def database_url(self) -> str:
        return str(json.loads((self.home / "stores.json").read_text(encoding="utf-8"))["database_url"])

    @property
    def redis_url(self) -> str:
        return str(json.loads((self.home / "stores.json").read_text(encoding="utf-8"))["redis_url"])


def _words(one: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{one.pid} {' '.join(one.cmdline())[:200]}"
    return f"{one.pid}"


MARKS = {
    "web": ("gunicorn",),
    "poller": ("poller",),
    "worker": ("worker",),
    "postgres": ("-D",),
    "valkey": ("redis-server", "valkey-server"),
    "reaper": ("reaper.py",),
}


def _is(one: psutil.Process, role: str) -> bool:
    with suppress(psutil.Error):
        words = one.cmdline()
        if role in ("postgres", "web"):
            return MARKS[role][0] in words
        if role == "valkey":
            return bool(words) and any(mark in words[0] for mark in MARKS[role])
        if role == "reaper":
            return any(word.endswith(MARKS[role]) for word in words)
        return bool(words) and words[-1] == role
    return False
