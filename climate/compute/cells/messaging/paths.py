"""Paths of cells: short names from one cell to another, joined by `!`."""

import re
from collections.abc import Sequence

from climate.compute.errors import BadRequest

SEPARATOR = "!"
ITEM = "@"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Short name, without the separators `!`, `.` and `@` of paths, queues and foreign hosts."""


def check_name(name: object) -> str:
    """Return a short name of a cell. Raise BadRequest if it is invalid."""
    if not is_name(name):
        raise BadRequest(
            "The name of a cell must have 1 to 64 letters, digits, '-' or '_' and no '!', '.' or '@', "
            f"got {str(name)[:80]!r}"
        )
    return str(name)


def is_name(name: object) -> bool:
    """Return whether this is a short name of a cell."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def is_path(path: object) -> bool:
    """Return whether this is a path of at least one cell."""
    return isinstance(path, str) and all(NAME.fullmatch(part) for part in path.split(SEPARATOR))


def split(path: str) -> list[str]:
    """Return the short names of a path, in order."""
    return path.split(SEPARATOR)


def join(*parts: str) -> str:
    """Return the joined path of these names or paths, without empty ones."""
    return SEPARATOR.join(part for part in parts if part)


def hops(path: str) -> int:
    """Return the number of hops of a path: 0 for a single cell."""
    return path.count(SEPARATOR)


def with_item(path: str, item: str) -> str:
    """Return the name under which a resource of another cell, such as a host, is known here: `path@item`."""
    return f"{path}{ITEM}{item}"


def split_item(name: str) -> tuple[str | None, str]:
    """Return the path and the item of such a name, split at its last `@`; the path is None without one."""
    path, separator, item = name.rpartition(ITEM)
    return (path, item) if separator else (None, name)


def reverse(path: str) -> str:
    """Return the reversed path."""
    return SEPARATOR.join(reversed(split(path)))


def last(path: str) -> str:
    """Return the short name of the cell at the end of a path."""
    return path.rpartition(SEPARATOR)[2]


def response_target(routing_path: str, *, neighbour_only: bool = False) -> str:
    """Return the target of a response to a message that came by this path.

    `neighbour_only`: to the neighbour that forwarded the message, not to its origin.
    """
    names = split(reverse(routing_path))
    return join(*(names[:2] if neighbour_only else names))


def is_prefix(path: str, whole: Sequence[str]) -> bool:
    """Return whether `whole` begins with the names of `path`."""
    names = split(path)
    return list(whole[: len(names)]) == names
