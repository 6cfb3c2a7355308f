"""A runner in a process of its own, on a Procfile of tiny programs."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

PROGRAMS = Path(__file__).parent / "programs"
GIVEN = {"CLIMATE_DATABASE_URL": "postgresql://elsewhere/x", "CLIMATE_REDIS_URL": "redis://elsewhere"}
"""Both stores by URL: nothing is started for them, and the tiny programs do not use them."""
RUN = """
import ast, os, sys
from climate.runner.stack import ProcessSelection, up
from climate.settings import Settings
sys.exit(up(Settings.from_env(os.environ), os.environ, ProcessSelection(**ast.literal_eval(sys.argv[1])), sys.stdout))
"""


def idle(name: str, *words: str) -> str:
    """A line of a Procfile: a process with a child of its own, that waits for its end."""
    return " ".join([f"{name}: python", str(PROGRAMS / "idle.py"), name, *words])


WEB = f"web: python {PROGRAMS / 'web.py'}"


class Runner:
    """A runner whose lines can be waited for."""

    def __init__(self, home: Path, port: int, order: dict[str, object], environ: dict[str, str]) -> None:
        self.home, self.port = home, port
        self.lines: list[str] = []
        self._more = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, repr(order)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=Path(__file__).parents[2],
            env={"PATH": os.defpath, "CLIMATE_HOME": str(home), "CLIMATE_PORT": str(port), **environ},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()

    def wait_for(self, pattern: str, times: int = 1, seconds: float = 60) -> re.Match[str]:
        """The last of so many lines with this pattern, as soon as they are there."""

        def found() -> list[re.Match[str]]:
            return [match for line in self.lines if (match := re.search(pattern, line))]

        with self._more:
            assert self._more.wait_for(lambda: len(found()) >= times, seconds), "\n".join([pattern, *self.lines])
            return found()[times - 1]

    def ready(self) -> "Runner":
        self.wait_for(f"^climate is ready at http://127.0.0.1:{self.port}$")
        return self

    def pid_of(self, name: str, times: int = 1) -> int:
        """The process of an idle program."""
        return int(self.wait_for(rf"{name} (\d+) above", times)[1])

    def family(self) -> list[psutil.Process]:
        """Everything below the runner, and the runner."""
        runner = psutil.Process(self.process.pid)
        return [runner, *runner.children(recursive=True)]

    def end(self, number: int = signal.SIGINT, seconds: float = 60) -> int:
        """Send a signal and wait; the answer is the exit status."""
        self.process.send_signal(number)
        return self.result(seconds)

    def result(self, seconds: float = 60) -> int:
        status = self.process.wait(seconds)
        self._reader.join(seconds)
        return status


Begin = Callable[..., Runner]


@pytest.fixture
def home() -> Iterator[Path]:
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    top = Path(tempfile.mkdtemp(prefix="climate-test-", dir=memory if roomy else None))
    top.chmod(0o755)
    yield top / "var"
    shutil.rmtree(top)


@pytest.fixture
def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def begin(home: Path, port: int) -> Iterator[Begin]:
    """Begins runners: the lines of a Procfile, further fields of the order as keywords; ends what is left of them."""
    begun: list[Runner] = []

    def start(*lines: str, environ: dict[str, str] | None = None, **order: object) -> Runner:
        runner = Runner(home, port, {"procfile": "\n".join(lines), **order}, GIVEN if environ is None else environ)
        begun.append(runner)
        return runner

    yield start
    for runner in begun:
        if runner.process.poll() is None:
            runner.process.kill()
            runner.result()


def nothing_left_of(processes: list[psutil.Process], seconds: float = 60) -> bool:
    """Whether all of these processes end; a zombie has ended, and only waits for somebody else to notice."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
