"""An image: what a server is made from, or a snapshot of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

QUEUED, SAVED, ACTIVE, KILLED = "queued", "saving", "active", "killed"


@dataclass(frozen=True, slots=True)
class Image:
    """A named image.  `size` in bytes, None until its content is there."""

    id: str
    name: str
    project_id: str | None
    status: str
    visibility: str
    disk_format: str | None
    container_format: str | None
    size: int | None
    sha512: str | None
    properties: Mapping[str, Any] = field(default_factory=dict)
    server_id: str | None = None
    """The server it is a snapshot of."""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def seen_by(self, project_id: str) -> bool:
        return self.visibility == "public" or self.project_id == project_id
