"""Storage and volumes, as the engine knows them.  Sizes are in GB (1 GB is 2^30 bytes)."""

from dataclasses import dataclass


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
