"""An aggregate: a named group of nodes with metadata.  The pools of leases are aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A pool of nodes: the reservation pool, or one lent to a reservation and named by its id."""

    id: int
    uuid: str
    name: str
    metadata: Mapping[str, str]
    nodes: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
