"""Storage and volumes, as the engine knows them.  Sizes are in GB (1 GB is 2^30 bytes)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CloudStorage:
    """A place of the cloud in which volumes are made."""

    backend: str
    capacity_gb: int
    """How much it can hold in all."""


@dataclass(frozen=True, slots=True)
class VolumeOrder:
    """A volume that a reservation is to have.  `pool` is the reservation's id, `number` counts its volumes from 1."""

    pool: str
    number: int
    project_id: str
    backend: str
    storage_class: str
    size_gb: int


@dataclass(frozen=True, slots=True)
class CloudVolume:
    """A volume that was made for a reservation."""

    id: str
    pool: str
    number: int
    project_id: str
    backend: str
    size_gb: int
    kept: bool = False
    """Whether its reservation is over, and it is its project's until somebody deletes it."""
