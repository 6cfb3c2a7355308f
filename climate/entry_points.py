"""Entry points of the installed packages by group, read once per process.

`importlib.metadata` reads the files of every installed package at each call, and a start needs a dozen calls.
"""

import sys
from functools import cache
from importlib.metadata import EntryPoints, SelectableGroups, entry_points


def installed(group: str) -> EntryPoints:
    """Return the entry points of a group. Packages that are installed later are visible to new processes only."""
    return _all(tuple(sys.path)).select(group=group)


@cache
def _all(path: tuple[str, ...]) -> SelectableGroups:
    """Return all entry points that are found along a search path."""
    return entry_points()
