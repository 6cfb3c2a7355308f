"""How others put a command into a sandbox, and how a process knows that it is in one."""

import sys
from collections.abc import Sequence

from climate.sandbox.namespace import MARK


def words(command: Sequence[str], *, session: bool = False) -> list[str]:
    """The command that runs this one in a sandbox; for its meaning see climate.sandbox.enter."""
    options = ["--session"] if session else []
    return [sys.executable, "-m", "climate.sandbox.enter", *options, "--", *command]


def within() -> bool:
    """Return whether this process is in a sandbox."""
    return MARK.exists()
