"""Copying disks of a running machine to another QEMU, and keeping the copies up to date until the other takes over.

The copies go over the NBD protocol: through a socket in the folder of the receiver, or over TCP under TLS.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from socket import socket
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.virt.qemu.qmp import Monitor

SOCKET = "nbd"

_JOB, _EXPORT = "climate-mirror", "climate-export"
_STEP_SECONDS = 0.01
_ENDS = ("BLOCK_JOB_COMPLETED", "BLOCK_JOB_CANCELLED")


@dataclass(frozen=True, slots=True)
class Copied:
    """How far copies are, in bytes; `ready`: they are the same as the disks, and are kept so."""

    total: int = 0
    done: int = 0
    ready: bool = True

    @property
    def remaining(self) -> int:
        return max(0, self.total - self.done)


def serve(theirs: Monitor, listening: socket, exports: Mapping[str, str], credentials: str | None = None) -> None:
    """Have a QEMU take copies at a socket that listens: name of the export -> its node."""
    stop_serving(theirs)
    theirs.ask("getfd", [listening.fileno()], fdname=SOCKET)
    secured: dict[str, Any] = {} if credentials is None else {"tls_creds": credentials}
    theirs.ask("nbd-server-start", addr={"type": "fd", "data": {"str": SOCKET}}, **secured)
    for name, node in exports.items():
        export: dict[str, Any] = {"id": f"{_EXPORT}-{name}", "node_name": node, "name": name}
        theirs.ask("block-export-add", type="nbd", **export, writable=True)


def copy(ours: Monitor, node: str, stream: socket, credentials: str | None = None) -> None:
    """Have the disk `node` of a machine copied to the export of that name at the other end of a connection."""
    ours.ask("getfd", [stream.fileno()], fdname=SOCKET)
    server, job = {"type": "fd", "str": SOCKET}, _job_of(node)
    secured: dict[str, Any] = {} if credentials is None else {"tls_creds": credentials}
    ours.ask("blockdev-add", node_name=job, driver="nbd", server=server, export=node, **secured)
    ours.ask("blockdev-mirror", job_id=job, device=node, target=job, sync="full")


def under_way(ours: Monitor, nodes: Collection[str]) -> bool:
    """Whether all of these disks are being copied."""
    return {_job_of(node) for node in nodes} <= _jobs(ours).keys()


def look(ours: Monitor, nodes: Collection[str]) -> Copied:
    """How far the copies of these disks are; VirtError when one has ended."""
    jobs = _jobs(ours)
    wanted = [jobs.get(_job_of(node)) for node in nodes]
    found = [job for job in wanted if job is not None]
    if len(found) < len(wanted):
        raise VirtError("the copy of the disk has ended")
    total, done = (sum(int(job[figure]) for job in found) for figure in ("len", "offset"))
    return Copied(total, done, all(job["ready"] for job in found))


def finish(ours: Monitor, nodes: Collection[str]) -> None:
    """Complete the copies of disks that nobody writes to any more.  VirtError when one is not whole."""
    for name in map(_job_of, nodes):
        ours.ask("block-job-cancel", device=name)
        # A job that has ended tells only here whether its last block has arrived.
        end = ours.event(lambda data, name=name: data.get("device") == name, *_ENDS)  # type: ignore[misc]
        if "error" in end or end.get("offset") != end.get("len"):
            raise VirtError(f"the copy of the disk is not whole: {end.get('error', 'it was broken off')}")
    _detach(ours)


def stop_serving(theirs: Monitor) -> None:
    """Take no more of any disk."""
    with suppress(VirtError):  # refused where nothing is served
        theirs.ask("nbd-server-stop")


def give_up(ours: Monitor) -> None:
    """Leave nothing of any copy, whatever it is at."""
    for name in _jobs(ours):
        with suppress(VirtError):  # it may have ended by itself just now
            ours.ask("block-job-cancel", device=name, force=True)
    while _jobs(ours):
        time.sleep(_STEP_SECONDS)
    _detach(ours)


def _job_of(node: str) -> str:
    return f"{_JOB}-{node}"


def _jobs(ours: Monitor) -> dict[str, dict[str, Any]]:
    return {job["device"]: job for job in ours.ask("query-block-jobs") if job["device"].startswith(_JOB)}


def _detach(ours: Monitor) -> None:
    for node in ours.ask("query-named-block-nodes", flat=True):
        if node["node-name"].startswith(_JOB):
            ours.ask("blockdev-del", node_name=node["node-name"])
