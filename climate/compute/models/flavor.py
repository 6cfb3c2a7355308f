"""The size of a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RESERVATION = "aggregate_instance_extra_specs:reservation"
"""Extra spec of a flavor for the capacity of a reservation: the reservation's id."""

GROUP = "affinity_id"
"""Extra spec of such a flavor: the server group of the reservation. It makes no demand on a node."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A named size. Sizes: MB of memory and swap, GB of disk."""

    id: str
    name: str
    vcpus: int
    ram_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    is_public: bool = True
    projects: tuple[str, ...] = ()
    """Projects that may use it if it is not public."""
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None

    @property
    def disk_mb(self) -> int:
        """Return the disk of a server of this size in MB: root, ephemeral and swap."""
        return 1024 * (self.disk_gb + self.ephemeral_gb) + self.swap_mb

    @property
    def reservation(self) -> str | None:
        """Return the reservation whose capacity servers of this size use; None: an ordinary size."""
        return self.extra_specs.get(RESERVATION)

    def usable_by(self, project_id: str) -> bool:
        return self.is_public or project_id in self.projects


def recorded(fields: Mapping[str, Any]) -> Flavor:
    """Return the flavor that was stored with a server."""
    return Flavor(**{**fields, "projects": tuple(fields["projects"])})


DEFAULTS = (
    Flavor("42", "m1.nano", 1, 128, 1),
    Flavor("1", "m1.tiny", 1, 512, 1),
    Flavor("2", "m1.small", 1, 2048, 20),
    Flavor("3", "m1.medium", 2, 4096, 40),
    Flavor("4", "m1.large", 4, 8192, 80),
    Flavor("5", "m1.xlarge", 8, 16384, 160),
)
"""The flavors of a new cloud."""
