"""Start a program as a direct child that never outlives us."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from climate.embedded.account import Account, die_with_parent, libc
from climate.embedded.errors import StoreError

PLAIN_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""What a store finds in its environment: nothing that could redirect it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, as whom, and how to stop it.

    `keeps` are our open files that it holds open too (the lock on the home); `stop_seconds` is the longest time
    between its stop signal and its end by force.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    keeps: tuple[int, ...] = ()


def start(program: Program, output: int | IO[bytes], *, folder: str | None = None) -> subprocess.Popen[bytes]:
    """A child in a session of its own that gets its stop signal when we die.

    Only from the main thread: the kernel ties the death signal to the thread that forked, not to the process.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{program.name} has to be started from the main thread")
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
    """End a child politely, then by force."""
    if process.poll() is None:
        process.send_signal(program.stop_signal)
    try:
        process.wait(program.stop_seconds)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait()


def kill_group(leader: int) -> None:
    """End by force everything in the process group of a child."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def run_to_end(program: Program, seconds: float = 60.0) -> str:
    """Run a short program and answer with its output; StoreError holds the output when it fails."""
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
