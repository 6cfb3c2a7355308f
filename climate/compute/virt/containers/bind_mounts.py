"""Bind mounts into running containers."""

import subprocess
import sys
from pathlib import Path

from climate.compute.errors import VirtError

PROGRAM = Path(__file__).with_name("bind_mount_program.py")
SECONDS = 10.0


def bind(pid: int, folder: str, source: Path | None) -> None:
    """Bind a folder of this machine into the mount namespace of a process; `source` None unmounts it.
    Raise VirtError.
    """
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(pid), folder]
    command += [] if source is None else [str(source)]
    try:
        done = subprocess.run(  # noqa: S603  (paths of ours)
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise VirtError(f"{folder} cannot be bound into a container: timeout after {SECONDS:g} s") from None
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2]
        raise VirtError(f"{folder} cannot be bound into a running container: {said}; stop the server first")
