"""Folders bound into containers that run already."""

import subprocess
import sys
from pathlib import Path

from climate.compute.errors import VirtError

PROGRAM = Path(__file__).with_name("bind_program.py")
SECONDS = 10.0


def bind(pid: int, folder: str, source: Path | None) -> None:
    """Show a folder of this machine behind the walls of a process, or with None take it away.  VirtError."""
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(pid), folder]
    command += [] if source is None else [str(source)]
    try:
        done = subprocess.run(  # noqa: S603  (paths of ours)
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise VirtError(f"{folder} cannot be bound into a container: it takes longer than {SECONDS:g} s") from None
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2]
        raise VirtError(f"{folder} cannot be bound into a container that runs: {said}; stop the server before")
