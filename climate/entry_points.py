"""Entry points of the installed packages by group, read once per process.

`importlib.metadata` reads the files of every installed package at each call, and a start needs a dozen calls.
"""

import sys
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any


def installed(group: str) -> EntryPoints:
    """Return the entry points of a group; packages that come to the same folders later are seen by a new process."""
    result: EntryPoints = _all(tuple(sys.path)).select(group=group)
    return result


@cache
def _all(path: tuple[str, ...]) -> Any:
    """Return all entry points that are found along a search path.

    Their class differs: SelectableGroups in Python 3.11, EntryPoints in 3.12 and later.
    """
    return entry_points()
