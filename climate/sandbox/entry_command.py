"""Command that enters a sandbox, and the check whether this process is in one."""

import sys
from collections.abc import Sequence

from climate.sandbox.namespace import MARK


def words(command: Sequence[str], *, session: bool = False) -> list[str]:
    """Return the command that runs this one in a sandbox; climate.sandbox.enter describes it."""
    options = ["--session"] if session else []
    return [sys.executable, "-m", "climate.sandbox.enter", *options, "--", *command]


def within() -> bool:
    """Return whether this process is in a sandbox."""
    return MARK.exists()
