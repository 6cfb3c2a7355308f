"""Folders, ports and passwords of one OpenStack, and its processes.

Everything is below one folder and on loopback addresses, with ports chosen by the system.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".venv-openstack"
BIN = VENV / "bin"
PASSWORD = "open-sesame"
HOSTS = ("h1", "h2", "h3")
STORES = ("mariadb", "rabbitmq")
SERVICES = (*STORES, "epmd", "erlang", "keystone", "placement", "glance", "neutron", "nova")
STOP_SECONDS = 20.0


def free_ports() -> dict[str, int]:
    """Return a free port for each service; all are held until the last is chosen."""
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.create_server(("127.0.0.1", 0))) for name in SERVICES}
        return {name: int(one.getsockname()[1]) for name, one in sockets.items()}


@dataclass
class Layout:
    """One OpenStack: where its files are, and the processes that run."""

    home: Path
    ports: Mapping[str, int] = field(default_factory=free_ports)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def folder(self, *parts: str) -> Path:
        """Return a folder, which exists afterwards."""
        path = self.home.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def etc(self, service: str) -> Path:
        return self.folder("etc", service)

    def url(self, service: str, path: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[service]}{path}"

    def database(self, name: str) -> str:
        return f"mysql+pymysql://root:{PASSWORD}@127.0.0.1:{self.ports['mariadb']}/{name}"

    @property
    def broker(self) -> str:
        return f"rabbit://guest:guest@127.0.0.1:{self.ports['rabbitmq']}/"

    @property
    def socket(self) -> Path:
        return self.home / "mariadb.sock"

    def start(self, name: str, *words: str | Path, **environ: str) -> None:
        """Start a process in a session and a folder of its own, with its output in a file; RabbitMQ dumps into it."""
        with (self.folder("log") / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*words],
                env={**os.environ, **environ},
                cwd=self.folder("work", name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, *words: str | Path, **environ: str) -> None:
        """Run a command to its end; CalledProcessError with the end of its output if it fails."""
        made = subprocess.run(
            [*words],
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{made.stdout[-2000:]}{made.stderr[-2000:]}"
        assert made.returncode == 0, f"{' '.join(map(str, words))} ended with {made.returncode}: {said}"

    def stop(self, *names: str) -> None:
        """End processes with their children, gently and then not; each is asked before any is waited for."""
        ended = [self.running.pop(name) for name in names]
        families = [one for process in ended for one in _family(process.pid)]
        for process in ended:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        _, left = psutil.wait_procs(families, timeout=STOP_SECONDS)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        for process in ended:
            process.wait()

    def stop_all(self) -> None:
        """End the services, and then the stores that they use."""
        self.stop(*(name for name in self.running if name not in STORES))
        self.stop(*self.running)

    def log(self, name: str) -> str:
        """Return the end of what a process wrote."""
        path = self.folder("log") / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace")[-3000:] if path.exists() else ""


def _family(pid: int) -> list[psutil.Process]:
    """Return a process and its children, or nothing if it has ended."""
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []
