"""Telling the allocators of networks about a change, in the transaction that makes it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection

Change = tuple[str, str, Mapping[str, Any]]
"""(network, method of the allocator, what it needs to know)."""


class TellNetwork(Protocol):
    """Tells of changes, in their order."""

    def __call__(self, conn: Connection, changes: Sequence[Change], /) -> None: ...


def silent_network(conn: Connection, changes: Sequence[Change], /) -> None:
    """Tell nobody: addresses are taken from the database directly, and there is no allocator."""
