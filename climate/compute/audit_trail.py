"""Changes of the cloud by administrators, each recorded in its own transaction for an audit trail."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection

AGGREGATE, CELL, FLAVOR, NODE, QUOTA = "aggregate", "cell", "flavor", "compute_node", "quota"
SERVICE, ZONE = "compute_service", "zone"

SET, CHANGED = "set", "changed"
"""The only words recorded of a secret."""

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object. `before` is None for a new object, `after` for a deleted one.

    Both hold JSON values only, and no secrets.
    """

    kind: str
    object_id: str
    name: str
    before: Values | None
    after: Values | None
    project_id: str | None = None


class TellChange(Protocol):
    """Record a change, in the transaction of the change."""

    def __call__(self, conn: Connection, change: Change, /) -> None: ...


def silent(conn: Connection, change: Change, /) -> None:
    """Record nothing."""


def secrets(values: Mapping[str, object], names: Collection[str], word: str) -> dict[str, str]:
    """Return the secrets among the values, each replaced by a word."""
    return {name: word for name in names if values.get(name)}
