"""Run a command in a sandbox: `python -m climate.sandbox.enter [--session] [--] COMMAND...`.

Three processes: this one; its child, the first process of the sandbox, whose end ends everything inside; and the
command.  The first process dies with this one, even after a crash.  The exit status is the command's.
"""

import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from climate.sandbox import namespace, syscalls
from climate.sandbox.namespace_errors import Impossible, why
from climate.settings import environment

CANNOT = 125
"""Exit status if no sandbox is possible; the reason is on stderr."""
SYSTEM_PROGRAMS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of the programs for networks, which may be missing in PATH."""

_SEPARATE = syscalls.NEW_NETWORK | syscalls.NEW_MOUNTS | syscalls.NEW_PIDS | syscalls.NEW_HOSTNAME | syscalls.NEW_IPC
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HEARD = {*_ENDINGS, signal.SIGCHLD}
_BY_KERNEL = 0x80
"""Code of a signal that a terminal sent to all foreground processes."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command in a new sandbox; return its exit status."""
    session = arguments[:1] == ["--session"]
    command = list(arguments[1:] if session else arguments)
    command = command[1:] if command[:1] == ["--"] else command
    surroundings = with_system_programs(environ)
    try:
        return run(lambda: _become(command, surroundings), _needed(surroundings), session=session)
    except Impossible as reason:
        print(f"sandbox: {reason}", file=sys.stderr)  # noqa: T201
        return CANNOT


def run(work: Callable[[], int], kept: Sequence[Path] = (), *, session: bool = False) -> int:
    """Run the work as a process of a new sandbox; return its exit status, 128 and more for a signal.

    With `session` it has its own session, and this process forwards a terminal's Ctrl-C.
    Raises Impossible if a sandbox is not possible.  Call it only in a process without other threads.
    """
    if sys.platform != "linux":
        raise Impossible(why(OSError()))
    try:
        _separate()
    except OSError as error:
        raise Impossible(why(error)) from None
    here, there = os.pipe()
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    first = os.fork()
    if first == 0:
        os.close(there)
        os.close(reader)
        _first(work, kept, session, (here, writer))
    os.close(here)
    os.close(writer)
    refusal = _read_all(reader)
    status = _attend(first, lambda code: session or code != _BY_KERNEL)
    os.close(there)
    if refusal:
        raise Impossible(refusal)
    return status


def with_system_programs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with a PATH that includes the programs for networks."""
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    return {**environ, "PATH": os.pathsep.join([*path, *(one for one in SYSTEM_PROGRAMS if one not in path)])}


def _needed(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths that must stay reachable inside the sandbox."""
    named = [Path.cwd(), Path(sys.executable), Path(sys.prefix), Path(tempfile.gettempdir()), Path(__file__)]
    homes = [Path(environ[name]) for name in ("CLIMATE_HOME", "HOME") if environ.get(name)]
    return named + homes + [Path(part) for part in environ["PATH"].split(os.pathsep) if part]


def _separate() -> None:
    """Enter new namespaces; an ordinary user becomes root of a user namespace with only that user."""
    if os.geteuid() == 0:
        with suppress(PermissionError):
            return syscalls.unshare(_SEPARATE)
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(_SEPARATE | syscalls.NEW_USER)
    for name, text in ("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1"):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    return None


def _first(work: Callable[[], int], kept: Sequence[Path], session: bool, pipes: tuple[int, int]) -> NoReturn:
    """Run as process 1 of the sandbox: set it up, start the work, and reap all processes."""
    parent, writer = pipes
    status = CANNOT
    try:
        syscalls.die_with_parent()
        if session:
            # Of a signal that comes by two ways the second may be lost, and with it who has sent it.
            os.setsid()
        # If the parent died earlier, its end of the pipe is closed.
        if select.select([parent], [], [], 0)[0]:
            os._exit(CANNOT)
        namespace.furnish(kept)
        os.close(writer)
        status = _attend(_start(work, session), lambda code: session or code != _BY_KERNEL)
    except OSError as error:
        with suppress(OSError):
            os.write(writer, why(error).encode())
    finally:
        os._exit(status)


def _start(work: Callable[[], int], session: bool) -> int:
    child = os.fork()
    if child:
        return child
    status = CANNOT
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        if session:
            os.setsid()
        status = work()
    except Exception as error:  # noqa: BLE001 - here a process ends
        print(f"sandbox: {error}", file=sys.stderr)  # noqa: T201
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _become(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), environ)  # noqa: S606 - there is no shell
    except OSError as error:
        raise OSError(f"{command[0]} cannot be run: {error.strerror}") from None


def _attend(child: int, passes: Callable[[int], bool]) -> int:
    """Wait for the end of this child; forward the signals that it has not received itself."""
    while True:
        said = signal.sigwaitinfo(_HEARD)
        if said.si_signo == signal.SIGCHLD:
            status = _reap(child)
            if status is not None:
                return status
        elif passes(said.si_code):
            os.kill(child, said.si_signo)


def _reap(child: int) -> int | None:
    """Reap all ended processes; return the status of the child if it is among them."""
    with suppress(ChildProcessError):
        while True:
            dead, status = os.waitpid(-1, os.WNOHANG)
            if dead == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if dead == 0:
                return None
    return None


def _read_all(file: int) -> str:
    with open(file, encoding="utf-8", errors="replace") as pipe:
        return pipe.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], environment()))
