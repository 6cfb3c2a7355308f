"""Projects, users, roles and credentials as plain values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from climate.domain.policy import ADMIN, IMPLIED, MEMBER, READER

DOMAIN_ID, DOMAIN_NAME = "default", "Default"
"""The only domain; it has no row of its own."""

MANAGER, SERVICE = "manager", "service"

ROLES = (ADMIN, MANAGER, MEMBER, READER, SERVICE)
"""Default roles, which cannot be changed; their ids are their names."""

# Not in the policy: another identity service may have a role of this name that implies nothing.
_IMPLIED = {**IMPLIED, ADMIN: IMPLIED[ADMIN] | {MANAGER}, MANAGER: IMPLIED[MEMBER] | {MANAGER}}

Extra = Mapping[str, object]
"""Attributes of a user or a project that only clients read."""


def implied(roles: Iterable[str]) -> frozenset[str]:
    """Return the roles, and those that they imply."""
    return frozenset(inner for role in roles for inner in _IMPLIED.get(role, {role}))


@dataclass(frozen=True, slots=True)
class Project:
    """A project: owner of leases and servers."""

    id: str
    name: str
    description: str
    enabled: bool
    parent_id: str | None = None
    """Project above it; None for a project that is directly in the domain."""
    tags: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccountNames:
    """Names of users and of projects, by their ids."""

    users: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Role:
    """A role. Other roles than the default ones allow only what a rule of the policy file says."""

    id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """A user, who signs in; permissions depend on its roles in the project of the token."""

    id: str
    name: str
    description: str
    email: str | None
    enabled: bool
    default_project_id: str | None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role of a user in a project or, without one, in the system, with all names."""

    user_id: str
    user_name: str
    project_id: str | None
    project_name: str | None
    role: str
    role_name: str


@dataclass(frozen=True, slots=True)
class Credential:
    """An application credential: a subset of one user's roles in one project, for a program.

    `roles` are ids.
    """

    id: str
    name: str
    user_id: str
    project_id: str
    roles: tuple[str, ...]
    description: str
    unrestricted: bool
    """True if it may create further credentials."""
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Who:
    """Reference to a user or project by id or by name."""

    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WholeSystem:
    """Scope of a token for the whole system."""


Scope = Who | WholeSystem
"""Scope of a token: a project, nothing, or the system."""
