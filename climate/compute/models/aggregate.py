"""An aggregate: a named group of nodes with metadata. The pools of leases are aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from climate.compute.models.node import KEPT, OWNER

POOL, ORDINARY = "pool", "aggregate"
"""The kinds: a node is in one pool at most, and in any number of ordinary aggregates."""

ZONE = "availability_zone"
"""Metadata of an ordinary aggregate: the availability zone of its nodes."""

NAMED = "reservation"
"""Metadata of an ordinary aggregate: the reservation of an external service that shares its nodes."""

INTERNAL = "internal"
"""The availability zone of services without servers; no node is in it."""


def kind_of(name: str, metadata: Mapping[str, str]) -> str:
    """Return the kind: pools without owner are known by name, a lent pool by the owner in its metadata."""
    return POOL if name in KEPT or OWNER in metadata else ORDINARY


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A group of nodes: an ordinary one, a pool without owner, or one lent to a reservation and named by its id."""

    id: int
    uuid: str
    name: str
    kind: str
    metadata: Mapping[str, str]
    fence: int
    """The highest token of a lease of this deployment that has changed it; 0: none has."""
    nodes: tuple[str, ...]
    created_at: datetime
    updated_at: datetime

    @property
    def zone(self) -> str | None:
        return self.metadata.get(ZONE)
