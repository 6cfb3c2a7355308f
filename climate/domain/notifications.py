"""Notifications, written in the transaction of their cause, and read or sent later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID


class Audience(StrEnum):
    PEOPLE = "people"  # listed, and sent to the configured addresses
    HOOK = "hook"  # only sent
    ENFORCEMENT = "enforcement"  # sent to the approval service


@dataclass(frozen=True, slots=True)
class Notice:
    """Notification to the members of a project and to admins; without a project, to admins only."""

    kind: str
    """Kind, such as lease.grace or host.failed."""
    message: str
    project_id: str | None = None
    user_id: str | None = None
    lease_id: UUID | None = None
    host: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs. Must be plain JSON."""
    audience: Audience = Audience.PEOPLE
