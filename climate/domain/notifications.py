"""What people are told: a notice is written where it becomes true, and read or sent later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID


class Audience(StrEnum):
    PEOPLE = "people"  # listed, and sent where notices are sent to
    HOOK = "hook"  # only sent
    ENFORCEMENT = "enforcement"  # sent to the service that is asked about leases


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to be told to the members of a project, and to admins; with no project to admins alone."""

    kind: str
    """Such as lease.grace or host.failed."""
    message: str
    project_id: str | None = None
    user_id: str | None = None
    lease_id: UUID | None = None
    host: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs.  Must be plain JSON."""
    audience: Audience = Audience.PEOPLE
