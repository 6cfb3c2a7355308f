"""Entry points of the installed packages by group, read once in a process.

`importlib.metadata` reads the files of every installed package at each look, and a start looks a dozen times.
"""

import sys
from functools import cache
from importlib.metadata import EntryPoints, SelectableGroups, entry_points


def installed(group: str) -> EntryPoints:
    """Return the entry points of a group; packages that come to the same folders later are seen by a new process."""
    return _all(tuple(sys.path)).select(group=group)


@cache
def _all(path: tuple[str, ...]) -> SelectableGroups:
    """Return all entry points that are found along a search path."""
    return entry_points()
