"""An image from which servers are created, or a snapshot of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor

QUEUED, SAVING, ACTIVE, KILLED = "queued", "saving", "active", "killed"
STAGED, DEACTIVATED = "uploading", "deactivated"
"""The content waits for its import; the content is not given out. Glance calls the first one `uploading`."""
PUBLIC, COMMUNITY, SHARED, PRIVATE = "public", "community", "shared", "private"

_GB = 1 << 30


class Content(NamedTuple):
    """The size of an image's content in bytes, and the format of its disk; None: as its owner declared."""

    size: int
    sha512: str
    disk_format: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A named image. `size` in bytes, None until its content is uploaded."""

    id: str
    name: str
    project_id: str | None
    status: str
    visibility: str
    disk_format: str | None
    container_format: str | None
    size: int | None
    sha512: str | None
    properties: Mapping[str, str] = field(default_factory=dict)
    server_id: str | None = None
    """The server of which it is a snapshot."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    min_disk_gb: int = 0
    min_ram_mb: int = 0
    """Minimum size of a server, in GB of disk and MB of memory."""
    protected: bool = False
    """The image cannot be deleted."""
    hidden: bool = False
    """Lists omit the image unless they ask for hidden ones."""
    tags: tuple[str, ...] = ()

    def is_visible_to(self, project_id: str) -> bool:
        """Return whether a project sees the image without being its member."""
        return self.visibility in (PUBLIC, COMMUNITY) or self.project_id == project_id

    def check_fits(self, flavor: Flavor) -> None:
        """Check that a server of this size can be created from the image, else raise BadRequest.

        A flavor without a disk of its own accepts any image, as in Nova.
        """
        if self.min_ram_mb > flavor.ram_mb:
            raise BadRequest(
                f"Flavor's memory is too small for requested image: it needs {self.min_ram_mb} MB, "
                f"and {flavor.name} has {flavor.ram_mb} MB."
            )
        least = max(self.min_disk_gb, -(-(self.size or 0) // _GB))
        if 0 < flavor.disk_gb < least:
            raise BadRequest(
                f"Flavor's disk is too small for requested image: it needs {least} GB, "
                f"and {flavor.name} has {flavor.disk_gb} GB."
            )
