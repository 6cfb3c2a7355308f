"""Notifications, written in the transaction of their cause, and read or sent later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID


class Audience(StrEnum):
    PEOPLE = "people"  # listed, and sent to the configured addresses
    HOOK = "hook"  # only sent
    ENFORCEMENT = "enforcement"  # sent to the approval service
    MAIL = "mail"  # sent to the user by mail


class Topic(StrEnum):
    """Topic of mail that a user may ask for."""

    START = "start"  # an hour before the start
    END_24H = "end_24h"
    END_1H = "end_1h"
    BEFORE_END = "before_end"  # at the time of the lease's own before_end_lease
    DEGRADED = "degraded"  # a lease lacks hosts, or was never started
    HEALED = "healed"
    ENDED = "ended"
    PREEMPTED = "preempted"  # hosts of a preemptible lease are needed for an ordinary one
    WAITING = "waiting"  # a lease of the waiting list got its hosts, or its time is over


TOPICS = {
    "lease.before_end": Topic.BEFORE_END,
    "lease.grace": Topic.BEFORE_END,
    "lease.degraded": Topic.DEGRADED,
    "lease.missed": Topic.DEGRADED,
    "lease.healed": Topic.HEALED,
    "lease.ended": Topic.ENDED,
    "lease.granted": Topic.WAITING,
    "lease.not_granted": Topic.WAITING,
    "lease.hold_expired": Topic.ENDED,
    "lease.preemption_planned": Topic.PREEMPTED,
    "lease.preemption_warning": Topic.PREEMPTED,
    "lease.preemption_moved": Topic.PREEMPTED,
    "lease.preemption_withdrawn": Topic.PREEMPTED,
    "lease.preempted": Topic.PREEMPTED,
}
"""Kind of notice -> topic of the mail about it. Other kinds are not mailed."""


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
    body: Mapping[str, object] = field(default_factory=dict)
    """The same for programs. Must be plain JSON."""
    audience: Audience = Audience.PEOPLE
