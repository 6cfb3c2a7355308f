"""Domains, projects, users, groups, roles and credentials as plain values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from climate.domain.policy import ADMIN, IMPLIED, MEMBER, READER

DOMAIN_ID, DOMAIN_NAME = "default", "Default"
"""The domain of users and projects that name none; it has no row, and a `domain_id` of None stands for it."""

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
class Domain:
    """A set of users, groups and projects; names are taken once in a domain."""

    id: str
    name: str
    description: str = ""
    enabled: bool = True
    extra: Extra = field(default_factory=dict)


DEFAULT_DOMAIN = Domain(DOMAIN_ID, DOMAIN_NAME)


@dataclass(frozen=True, slots=True)
class Project:
    """A project: owner of leases and servers."""

    id: str
    name: str
    description: str
    enabled: bool
    parent_id: str | None = None
    """Project above it; None for a project that is directly in its domain."""
    tags: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)
    domain_id: str | None = None


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
    domain_id: str | None = None
    """Domain in whose projects it is assigned; tokens have only the roles that it implies. None is any domain."""


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
    domain_id: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of users, which have its roles."""

    id: str
    name: str
    description: str = ""
    domain_id: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role of a user or a group in a project or, without one, in the system, with all names."""

    user_id: str
    """Id of the user, or of the group."""
    user_name: str
    project_id: str | None
    project_name: str | None
    role: str
    role_name: str
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    of_group: bool = False


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
class NameOrId:
    """Reference to a user, a group, a project or a domain by id or by name."""

    id: str | None = None
    name: str | None = None
    domain: "NameOrId | None" = None
    """Domain in which the name is looked up; None is the default one."""


@dataclass(frozen=True, slots=True)
class WholeSystem:
    """Scope of a token for the whole system."""


Scope = NameOrId | WholeSystem
"""Scope of a token: a project, nothing, or the system."""
