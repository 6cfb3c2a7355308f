"""Sharing of leases: further projects and users, what each of them may do, and the fact that changes it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from climate.domain.errors import Forbidden
from climate.domain.policy import Caller

MOST_PROJECTS = 32
MOST_USERS = 64
"""Maximum of viewers, and of extenders."""

ACCOUNT_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
"""Pattern of the ids of projects and users: those of Keystone and of the bundled identity."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Projects and users beside the owner's project, by their ids, in the order in which they were named."""

    projects: tuple[str, ...] = ()
    """Projects whose servers may boot on the lease."""
    viewers: tuple[str, ...] = ()
    """Users who may see the lease."""
    extenders: tuple[str, ...] = ()
    """Users who may see the lease and move its end to a later time."""

    def __bool__(self) -> bool:
        return bool(self.projects or self.viewers or self.extenders)


NOT_SHARED = Sharing()


@dataclass(frozen=True, slots=True)
class SharingChanged:
    """New sharing of a lease, and the former one."""

    at: datetime
    sharing: Sharing
    before: Sharing


class Access(StrEnum):
    """Relation of a caller to a lease, which says what the caller may do."""

    OWNER = "owner"  # member of the lease's project, or an administrator: everything
    EXTENDER = "extender"  # see it, and move its end to a later time
    PROJECT = "project"  # see it, and boot servers on it
    PARENT = "parent"  # member of the project that gave it as a sub-lease: see it, move its end, and delete it
    VIEWER = "viewer"  # see it
    NONE = "none"  # the lease does not exist for the caller


def access(project_id: str, sharing: Sharing, caller: Caller) -> Access:
    """Return the relation of a caller to a lease of a project; the one that allows the most changes."""
    if caller.is_admin or caller.project_id == project_id:
        return Access.OWNER
    if caller.user_id in sharing.extenders:
        return Access.EXTENDER
    if caller.project_id in sharing.projects:
        return Access.PROJECT
    return Access.VIEWER if caller.user_id in sharing.viewers else Access.NONE


def may_boot(project_id: str, sharing: Sharing, caller: Caller) -> bool:
    """Return whether a caller may boot servers on a lease. Administrators boot in the projects of the lease, too."""
    return caller.project_id in (project_id, *sharing.projects)


def as_seen(project_id: str, sharing: Sharing, caller: Caller) -> Sharing:
    """Return the sharing of a lease as a caller may know it: others than its owners see themselves only."""
    if not sharing or access(project_id, sharing, caller) is Access.OWNER:
        return sharing

    def own(named: tuple[str, ...], mine: str) -> tuple[str, ...]:
        return (mine,) if mine in named else ()

    return Sharing(
        own(sharing.projects, caller.project_id),
        own(sharing.viewers, caller.user_id),
        own(sharing.extenders, caller.user_id),
    )


def refusal(relation: Access) -> Forbidden:
    """Return the error for a change that is for owners only."""
    if relation is Access.PARENT:
        return Forbidden(
            "This sub-lease is of another project: yours gave it, so you may see it, move its end and delete it. "
            "Other changes are for members of its project and administrators"
        )
    shared = {
        Access.EXTENDER: "with you: you may see it and move its end to a later time",
        Access.PROJECT: "with your project: its members may see it and boot servers on it",
    }.get(relation, "with you: you may see it")
    return Forbidden(f"This lease is shared {shared}. Other changes are for members of its project and administrators")
