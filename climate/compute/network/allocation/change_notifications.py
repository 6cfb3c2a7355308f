"""Notification of allocators about a change, in the transaction that makes it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlalchemy import Connection

Change = tuple[str, str, Mapping[str, object]]
"""(network, method of the allocator, body of the notification)."""


class TellNetwork(Protocol):
    """Records notifications for allocators, in order."""

    def __call__(self, conn: Connection, changes: Sequence[Change], /) -> None: ...


def silent_network(conn: Connection, changes: Sequence[Change], /) -> None:
    """Do nothing: addresses are allocated in the database, and there is no allocator."""
