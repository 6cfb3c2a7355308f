"""Mirroring of a running machine's disks to another QEMU until it takes over.

It uses the NBD protocol, through a socket in the receiver's folder, or over TCP with TLS.
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
    """Progress of copies in bytes; `ready`: the copies equal the disks and follow their writes."""

    total: int = 0
    done: int = 0
    ready: bool = True

    @property
    def remaining(self) -> int:
        return max(0, self.total - self.done)


def serve(theirs: Monitor, listening: socket, exports: Mapping[str, str], credentials: str | None = None) -> None:
    """Start QEMU's NBD server on a listening socket; `exports`: export name -> block node."""
    stop_serving(theirs)
    theirs.execute("getfd", [listening.fileno()], fdname=SOCKET)
    secured: dict[str, Any] = {} if credentials is None else {"tls_creds": credentials}
    theirs.execute("nbd-server-start", addr={"type": "fd", "data": {"str": SOCKET}}, **secured)
    for name, node in exports.items():
        export: dict[str, Any] = {"id": f"{_EXPORT}-{name}", "node_name": node, "name": name}
        theirs.execute("block-export-add", type="nbd", **export, writable=True)


def copy(monitor: Monitor, node: str, stream: socket, credentials: str | None = None) -> None:
    """Mirror the disk `node` of a machine to the export of that name at the other end of a connection."""
    monitor.execute("getfd", [stream.fileno()], fdname=SOCKET)
    server, job = {"type": "fd", "str": SOCKET}, _job_of(node)
    secured: dict[str, Any] = {} if credentials is None else {"tls_creds": credentials}
    monitor.execute("blockdev-add", node_name=job, driver="nbd", server=server, export=node, **secured)
    monitor.execute("blockdev-mirror", job_id=job, device=node, target=job, sync="full")


def under_way(monitor: Monitor, nodes: Collection[str]) -> bool:
    """Return whether all of these disks are being copied."""
    return {_job_of(node) for node in nodes} <= _jobs(monitor).keys()


def progress(monitor: Monitor, nodes: Collection[str]) -> Copied:
    """Return the progress of these disks' copies. Raise VirtError if one has ended."""
    jobs = _jobs(monitor)
    wanted = [jobs.get(_job_of(node)) for node in nodes]
    matching = [job for job in wanted if job is not None]
    if len(matching) < len(wanted):
        raise VirtError("the copy of the disk ended unexpectedly")
    total, done = (sum(int(job[figure]) for job in matching) for figure in ("len", "offset"))
    return Copied(total, done, all(job["ready"] for job in matching))


def finish(monitor: Monitor, nodes: Collection[str]) -> None:
    """Complete the copies of disks without writers. Raise VirtError if one is incomplete."""
    for name in map(_job_of, nodes):
        monitor.execute("block-job-cancel", device=name)
        # Only a finished job reports whether its last block arrived.
        end = monitor.event(lambda data, name=name: data.get("device") == name, *_ENDS)  # type: ignore[misc]
        if "error" in end or end.get("offset") != end.get("len"):
            raise VirtError(f"the copy of the disk is incomplete: {end.get('error', 'it was cancelled')}")
    _detach(monitor)


def stop_serving(theirs: Monitor) -> None:
    """Stop the NBD server."""
    with suppress(VirtError):  # refused if the server is not running
        theirs.execute("nbd-server-stop")


def cancel(monitor: Monitor) -> None:
    """Cancel all copies, whatever their state."""
    for name in _jobs(monitor):
        with suppress(VirtError):  # it may have ended by itself in the meantime
            monitor.execute("block-job-cancel", device=name, force=True)
    while _jobs(monitor):
        time.sleep(_STEP_SECONDS)
    _detach(monitor)


def _job_of(node: str) -> str:
    return f"{_JOB}-{node}"


def _jobs(monitor: Monitor) -> dict[str, dict[str, Any]]:
    return {job["device"]: job for job in monitor.execute("query-block-jobs") if job["device"].startswith(_JOB)}


def _detach(monitor: Monitor) -> None:
    for node in monitor.execute("query-named-block-nodes", flat=True):
        if node["node-name"].startswith(_JOB):
            monitor.execute("blockdev-del", node_name=node["node-name"])
