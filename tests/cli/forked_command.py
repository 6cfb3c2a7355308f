"""The `climate` command in a fork of this process: a process of its own that imports nothing anew.

A new interpreter imports for much longer than such a command runs.
"""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import IO, NoReturn

from climate import bootstrap  # noqa: F401  # imported here, so that no fork has to
from climate.cli import main

LONGEST = 120
"""Seconds after which a command that goes on is ended, also where it has become another program."""


@dataclass(frozen=True)
class Ended:
    """The exit status of a command, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Forked:
    """A command that runs."""

    pid: int
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]]

    def ended(self) -> Ended:
        """Wait for its end."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        written = []
        for stream in self.streams[1:]:
            stream.seek(0)
            written.append(stream.read().decode())
        for stream in self.streams:
            stream.close()
        return Ended(status, *written)


def begin(words: tuple[str, ...], environ: Mapping[str, str], typed: str = "") -> Forked:
    """Start `climate WORDS...` with exactly this environment, and with these lines on its standard input."""
    given, out, err = TemporaryFile(), TemporaryFile(), TemporaryFile()  # noqa: SIM115  # `ended` closes them
    given.write(typed.encode())
    given.seek(0)
    pid = os.fork()
    if not pid:
        _become(words, environ, (given, out, err))
    return Forked(pid, (given, out, err))


def run(words: tuple[str, ...], environ: Mapping[str, str], typed: str = "") -> Ended:
    """Run `climate WORDS...`, and wait for its end."""
    return begin(words, environ, typed).ended()


def _become(words: tuple[str, ...], environ: Mapping[str, str], streams: tuple[IO[bytes], ...]) -> NoReturn:
    """Run the command as the process of a terminal does; whatever happens, the tests go on in the parent alone."""
    status = 70
    try:
        signal.alarm(LONGEST)
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (
            TextIOWrapper(open(number, mode, closefd=False), encoding="utf-8", write_through=True)  # noqa: SIM115
            for number, mode in enumerate(("rb", "wb", "wb"))
        )
        sys.argv = ["climate", *words]
        os.environ.clear()
        os.environ.update(environ)
        status = _status()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _status() -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
