"""A project that an image is shared with."""

from dataclasses import dataclass
from datetime import datetime

MEMBER_STATUSES = PENDING, ACCEPTED, REJECTED = "pending", "accepted", "rejected"


@dataclass(frozen=True, slots=True)
class Member:
    """A project that an image is shared with. Lists of the project show an image that it has accepted."""

    image_id: str
    project_id: str
    status: str
    created_at: datetime
    updated_at: datetime
