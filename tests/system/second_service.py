"""A second compute service beside that of the stack: worker processes of its own, a home of its own, the same cloud."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from tests.system.api_client import Api
from tests.system.stack import CLIMATE, ROOT, Stack

C = "/compute/v2.1"
NEW = {"OpenStack-API-Version": "compute 2.79"}
SECOND = "second"
FILE = "few.yaml"


@dataclass
class Second:
    """The workers of the second service."""

    stack: Stack
    home: Path
    more: Mapping[str, str] = field(default_factory=dict)
    """Further settings, as in the environment."""
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(self) -> None:
        """Start one more worker."""
        own = {"CLIMATE_HOME": str(self.home), "CLIMATE_COMPUTE_HOST": SECOND, "CLIMATE_NODES_FILE": FILE}
        stores = {"CLIMATE_DATABASE_URL": self.stack.database_url, "CLIMATE_REDIS_URL": self.stack.redis_url}
        few = {"CLIMATE_WORKER_QUEUES": "compute", "CLIMATE_WORKER_PROCESSES": "1"}
        started = subprocess.Popen(
            [*CLIMATE, "worker"],
            env={**self.stack.environ, **own, **stores, **few, **self.more},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(started)

    def alive(self) -> int:
        """How many workers there are."""
        return sum(process.poll() is None for process in self.processes)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


@contextmanager
def second(
    stack: Stack, admin: Api, home: Path, node: NodeSpec, more: Mapping[str, str] | None = None
) -> Iterator[Second]:
    """The service with this node, not started yet; forgotten in the end."""
    nodes_file.write(home, [node], FILE)
    made = Second(stack, home, more or {})
    try:
        yield made
    finally:
        made.stop()
    for found in admin.ask("GET", f"{C}/os-services?host={SECOND}", **NEW).json()["services"]:
        admin.ask("PUT", f"{C}/os-services/{found['id']}", {"forced_down": True}, **NEW)
        assert admin.ask("DELETE", f"{C}/os-services/{found['id']}", **NEW).status_code == 204


def service(admin: Api) -> dict[str, Any]:
    """The second service, as administrators see it; empty: there is none."""
    found = admin.ask("GET", f"{C}/os-services?host={SECOND}", **NEW).json()["services"]
    return dict(found[0]) if found else {}


def is_ready(admin: Api) -> bool:
    """Whether the second service is up and has recorded its node, which follows a moment later."""
    nodes = admin.read(f"{C}/os-hypervisors/detail")["hypervisors"]
    return any(one["service"]["host"] == SECOND and one["state"] == "up" for one in nodes)


def boot(admin: Api, zone: str) -> str:
    """Ask for a server; its id."""
    image = admin.read("/image/v2/images")["images"][0]["id"]
    body = {"name": "on-second", "imageRef": image, "flavorRef": "1", "networks": "auto", "availability_zone": zone}
    answer = admin.ask("POST", f"{C}/servers", {"server": body}, **NEW)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["server"]["id"])


def deadly(folder: Path, program: str, word: str, real: str) -> Mapping[str, str]:
    """Settings with which the first worker that starts `program` with this word dies of it, and all of its processes.

    The program itself goes on, as if the worker had died a moment later.
    """
    folder.mkdir()
    script = folder / program
    killed = 'kill -s KILL -- "-$(ps -o pgid= -p "$PPID" | tr -d " ")"'
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *{word}*) mkdir "{folder}/once" 2>/dev/null && {killed} ;; esac\nexec {real} "$@"\n',
        encoding="ascii",
    )
    script.chmod(0o700)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}
