"""Copying the disk of a running machine to another QEMU, and keeping the copy up to date until the other takes over.

The copy goes over the NBD protocol through a socket in the folder of the receiver.
"""

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.virt.machine import DISK_NODE
from climate.compute.virt.qmp import Monitor, bound, short

SOCKET = "nbd"

_JOB, _EXPORT = "climate-mirror", "climate-export"
_STEP_SECONDS = 0.01
_WAITING = 4


@dataclass(frozen=True, slots=True)
class Copied:
    """How far a copy is, in bytes; `ready`: it is the same as the disk, and is kept so."""

    total: int = 0
    done: int = 0
    ready: bool = True

    @property
    def remaining(self) -> int:
        return max(0, self.total - self.done)


def start(ours: Monitor, theirs: Monitor, folder: Path) -> None:
    """Have the disk of one machine copied to the other's; nothing when that is under way."""
    if _job(ours) is not None:
        return
    give_up(ours)
    stop_serving(theirs)
    with bound(folder, SOCKET, _WAITING) as listening:
        theirs.ask("getfd", [listening.fileno()], fdname=SOCKET)
        theirs.ask("nbd-server-start", addr={"type": "fd", "data": {"str": SOCKET}})
        theirs.ask("block-export-add", type="nbd", id=_EXPORT, node_name=DISK_NODE, name=DISK_NODE, writable=True)
        with socket.socket(socket.AF_UNIX) as stream, short(folder, SOCKET) as path:
            stream.connect(path)
            ours.ask("getfd", [stream.fileno()], fdname=SOCKET)
            server = {"type": "fd", "str": SOCKET}
            ours.ask("blockdev-add", node_name=_JOB, driver="nbd", server=server, export=DISK_NODE)
    ours.ask("blockdev-mirror", job_id=_JOB, device=DISK_NODE, target=_JOB, sync="full")


def look(ours: Monitor) -> Copied:
    """How far the copy is; VirtError when it has ended."""
    job = _job(ours)
    if job is None:
        raise VirtError("the copy of the disk has ended")
    return Copied(job["len"], job["offset"], bool(job["ready"]))


def finish(ours: Monitor) -> None:
    """Complete the copy of a disk that nobody writes to any more."""
    if _job(ours) is not None:
        ours.ask("block-job-cancel", device=_JOB)
        _await_end(ours)
    _detach(ours)


def stop_serving(theirs: Monitor) -> None:
    """Take no more of the disk."""
    with suppress(VirtError):  # refused where nothing is served
        theirs.ask("nbd-server-stop")


def give_up(ours: Monitor) -> None:
    """Leave nothing of a copy, whatever it is at."""
    if _job(ours) is not None:
        ours.ask("block-job-cancel", device=_JOB, force=True)
        _await_end(ours)
    _detach(ours)


def _job(ours: Monitor) -> dict[str, Any] | None:
    return next((job for job in ours.ask("query-block-jobs") if job["device"] == _JOB), None)


def _await_end(ours: Monitor) -> None:
    while _job(ours) is not None:
        time.sleep(_STEP_SECONDS)


def _detach(ours: Monitor) -> None:
    if any(node["node-name"] == _JOB for node in ours.ask("query-named-block-nodes", flat=True)):
        ours.ask("blockdev-del", node_name=_JOB)
