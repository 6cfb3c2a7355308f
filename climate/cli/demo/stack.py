"""Stack of the demo: `climate up` as a child, with its own home and port."""

import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from climate.cli.errors import ERROR, TIMEOUT, Failure
from climate.embedded.spawn import Program, start, stop

HOME = "var/demo"
PLAIN_UP = (sys.executable, "-m", "climate", "up")
UP = (*PLAIN_UP, "--demo")
START_SECONDS = 300.0
"""Timeout of the first start, on a slow machine."""
STOP_SECONDS = 60.0
RUNS = "climate runs "
"""Output of a stack without a web process when it is ready."""
SETTINGS = {
    "CLIMATE_POOLS_SECONDS": "1",
    "CLIMATE_IDLE_OFF_AFTER": "1",
    "CLIMATE_POWER_ON_LEAD": "10",
    "CLIMATE_POWER_TIMEOUT": "10",
    "CLIMATE_WARM_HOSTS": "0",
    "CLIMATE_LEAST_ON": "0",
    "CLIMATE_LEAST_OFF": "10",
    "CLIMATE_SERVICE_DOWN_SECONDS": "12",
    "CLIMATE_HOST_ON_END": "terminate",
    "CLIMATE_HOST_ON_END_CHOICES": "terminate, recycle, release",
    "CLIMATE_GRACE_PERIOD": "0",
    "CLIMATE_CLEANING_TIME": "0",
    "CLIMATE_CLEANING_HOOK": "",
}
"""Settings for the steps: short periods and timeouts."""
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack that answers."""

    environ: Mapping[str, str]
    url: str
    readiness: Mapping[str, object]


def surroundings(environ: Mapping[str, str], folder: str = HOME) -> dict[str, str]:
    """Return the environment of the demo's stack; without settings everything is its own, such as the home `folder`."""
    home = Path(environ.get("CLIMATE_HOME") or folder).absolute()
    port = environ.get("CLIMATE_PORT") or str(_free_port())
    own = {"CLIMATE_PUBLIC_URL": "", "OS_CLOUD": "", "OS_CLIENT_CONFIG_FILE": ""}
    return {**environ, **SETTINGS, **own, "CLIMATE_HOME": str(home), "CLIMATE_PORT": port}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def check_port(host: str, port: int, count: int = 1) -> None:
    """Check that a port is free; Failure says that `count` ports in a row are needed."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except (OSError, OverflowError) as error:
        needs = f"the tree needs {count} free ports in a row; set the first with --port" if count > 1 else "give --port"
        raise Failure(f"port {port} cannot be used: {error}", ERROR, needs) from None


@contextmanager
def running(
    environ: Mapping[str, str],
    waiting: Callable[[float], None],
    argv: tuple[str, ...] = UP,
    *,
    has_web: bool = True,
) -> Iterator[Stack]:
    """Run the stack while the block lasts; it is removed afterwards, also after an error.

    Without `has_web` no API answers: the stack is ready when it prints that its processes run.
    """
    home = Path(environ["CLIMATE_HOME"])
    log = home / "logs" / "demo.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    url = f"http://{environ.get('CLIMATE_HOST') or '127.0.0.1'}:{environ.get('CLIMATE_PORT')}"
    look = partial(_readiness, url) if has_web else partial(_running_processes, log)
    program = Program("climate up", argv, environ, stop_seconds=STOP_SECONDS)
    with _endings(), log.open("wb") as output:
        child = start(program, output)
        try:
            yield Stack(environ, url, _ready(child, look, log, waiting))
        finally:
            stop(child, program)


@contextmanager
def _endings() -> Iterator[None]:
    """Turn a signal to end into an exception while the block lasts, so that cleanup runs."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


Look = Callable[[], Mapping[str, object] | None]
"""Function that returns the readiness of a stack; None while it is not ready."""


def _ready(
    child: subprocess.Popen[bytes], look: Look, log: Path, waiting: Callable[[float], None]
) -> Mapping[str, object]:
    began, pause = time.monotonic(), 0.25
    while (spent := time.monotonic() - began) < START_SECONDS:
        try:
            child.wait(pause)
        except subprocess.TimeoutExpired:
            waiting(spent)
        else:
            raise Failure(f"the stack ended during its start: {_tail(log)}", ERROR, f"see {log}")
        answer = look()
        if answer is not None:
            return answer
    raise Failure(f"the stack is not ready after {spent:.0f} s: {_tail(log)}", TIMEOUT, f"see {log}")


def _readiness(url: str) -> Mapping[str, object] | None:
    try:
        answer = httpx.get(f"{url}/readyz", timeout=5.0, trust_env=False)
        return dict(answer.json()) if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError):
        return None


def _running_processes(log: Path) -> Mapping[str, object] | None:
    said = log.read_text(encoding="utf-8", errors="replace")
    return {} if RUNS in said else None


def _tail(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        return " / ".join(line.strip() for line in deque(lines, 3)) or "it said nothing"
