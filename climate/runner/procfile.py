"""Read a Procfile: `name: command` lines, split into words, never given to a shell."""

import re
import shlex
from collections.abc import Mapping
from string import Template

LINE = re.compile(r"([A-Za-z0-9_-]+):\s*(\S.*)")
RELEASE = "release"
"""Name of the command that runs once before all others."""


class ProcfileError(Exception):
    """Raised for an invalid line of a Procfile."""


def parse(text: str, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the words of each command by its name, in the order of the lines, with `$NAME` taken from `environ`.

    No shell runs the commands, because a shell could die alone and leave its program running.
    """
    commands: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line.strip())
        if not match or match[1] in commands:
            raise ProcfileError(f"line {number} of the Procfile is not `name: command` with a new name: {line.strip()}")
        commands[match[1]] = _words(number, match[2], environ)
    return commands


def _words(number: int, command: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        words = shlex.split(command, comments=False)
    except ValueError as error:
        raise ProcfileError(f"line {number} of the Procfile cannot be split into words: {error}") from None
    return tuple(Template(word).safe_substitute(environ) for word in words)
