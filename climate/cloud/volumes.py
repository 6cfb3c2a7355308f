"""Storage and volumes: the protocol Volumes and its values. Sizes are in GB (1 GB is 2^30 bytes)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CloudStorage:
    """A storage backend of the cloud."""

    backend: str
    capacity_gb: int
    """Total capacity in GB."""


@dataclass(frozen=True, slots=True)
class VolumeOrder:
    """A volume of a reservation. `pool` is the reservation's id, `number` counts its volumes from 1."""

    pool: str
    number: int
    project_id: str
    backend: str
    storage_class: str
    size_gb: int


@dataclass(frozen=True, slots=True)
class CloudVolume:
    """A volume that was created for a reservation."""

    id: str
    pool: str
    number: int
    project_id: str
    backend: str
    size_gb: int
    kept: bool = False
    """True if the reservation has ended and the volume belongs to its project until it is deleted."""


class Volumes(Protocol):
    """Create volumes for reservations, and delete them."""

    def find_storage(self, backend: str) -> CloudStorage | None:
        """Return the storage backend of that name, or None."""

    def ensure_volume(self, order: VolumeOrder, token: int) -> None:
        """Create a volume for a project, or extend it if it is smaller than requested.

        Raise Refused for an unknown backend.
        """

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        """Detach and delete all volumes of a pool; with `keep`, leave them to their project.

        Afterwards no volume can be created for the pool under a lower token, even if there was none. Raise NotYet while
        servers still use them.
        """

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        """Return the existing volumes of these pools."""
