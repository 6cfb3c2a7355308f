"""Start of a program as a direct child that never outlives this process."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from climate.embedded.account import Account, die_with_parent, libc
from climate.embedded.errors import StoreError

PLAIN_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""Environment of a store, without variables that could redirect it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, its account, and its stop signal.

    `keeps` are open files of this process that it inherits (the lock on the home); `stop_seconds` is the longest time
    between its stop signal and its kill. `data` is the folder without free space in which it cannot run.
    `chatter` matches lines of an ordinary start or stop, which are not shown.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    keeps: tuple[int, ...] = ()
    data: Path | None = None
    chatter: re.Pattern[str] | None = None


def start(program: Program, output: int | IO[bytes], *, folder: str | None = None) -> subprocess.Popen[bytes]:
    """Start a child in its own session; it gets its stop signal when this process dies.

    Call it from the main thread only: the kernel ties the death signal to the thread that forked, not to the process.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{program.name} must be started from the main thread")
    parent = os.getpid()
    library = libc()

    def become() -> None:
        if program.account:
            program.account.enter(library)
        die_with_parent(library, program.stop_signal, parent)

    return subprocess.Popen(  # noqa: S603 - there is no shell
        program.argv,
        env=dict(program.environ),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=program.keeps,
        preexec_fn=become,
        cwd=folder,
    )


def stop(process: subprocess.Popen[bytes], program: Program) -> None:
    """Send a child its stop signal, and kill it after the timeout."""
    if process.poll() is None:
        process.send_signal(program.stop_signal)
    try:
        process.wait(program.stop_seconds)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait()


def kill_group(leader: int) -> None:
    """Kill everything in the process group of a child."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def run_to_end(program: Program, seconds: float = 60.0) -> str:
    """Run a short program and return its output; StoreError has the output if it fails."""
    try:
        process = start(program, subprocess.PIPE)
    except (OSError, subprocess.SubprocessError) as error:
        raise StoreError(f"{program.argv[0]} cannot be run: {error}") from None
    try:
        said = process.communicate(timeout=seconds)[0].decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        raise StoreError(f"{program.argv[0]} did not end within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            kill_group(process.pid)
            process.wait()
    if process.returncode:
        raise StoreError(f"{program.argv[0]} failed: {said or process.returncode}")
    return said
