"""Point-in-time copy of a running virtual machine's disk."""

from contextlib import suppress
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.virt.qemu.command_line import DISK_NODE
from climate.compute.virt.qemu.qmp import Monitor

_COPY = "climate-copy"


def run(monitor: Monitor, target: Path) -> None:
    """Copy the disk into `target`, an empty disk of the same size. Raise VirtError."""
    _clear(monitor)
    file = {"driver": "file", "filename": str(target)}
    monitor.execute("blockdev-add", node_name=_COPY, driver="qcow2", file=file)
    try:
        monitor.execute("blockdev-backup", job_id=_COPY, device=DISK_NODE, target=_COPY, sync="full")
        ended = monitor.event(lambda data: data["device"] == _COPY, "BLOCK_JOB_COMPLETED")
    finally:
        with suppress(VirtError, OSError):
            monitor.execute("blockdev-del", node_name=_COPY)
    if ended.get("error"):
        raise VirtError(f"the disk cannot be copied: {ended['error']}")


def _clear(monitor: Monitor) -> None:
    """Cancel an abandoned copy of a worker that died."""
    if any(job["device"] == _COPY for job in monitor.execute("query-block-jobs")):
        monitor.execute("block-job-cancel", device=_COPY, force=True)
        monitor.event(lambda data: data["device"] == _COPY, "BLOCK_JOB_CANCELLED")
    if any(node["node-name"] == _COPY for node in monitor.execute("query-named-block-nodes", flat=True)):
        monitor.execute("blockdev-del", node_name=_COPY)
