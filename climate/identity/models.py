"""Projects, users, roles and credentials as plain values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from climate.domain.policy import ADMIN, IMPLIED, MEMBER, READER

DOMAIN_ID, DOMAIN_NAME = "default", "Default"
"""There is one domain; it has no row of its own."""

ROLES = (ADMIN, MEMBER, READER)
"""A role's id is its name."""


def implied(roles: Iterable[str]) -> frozenset[str]:
    """The roles, and those that they stand for as well."""
    return frozenset(inner for role in roles for inner in IMPLIED[role])


@dataclass(frozen=True, slots=True)
class Project:
    """Owns leases and servers."""

    id: str
    name: str
    description: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class User:
    """Signs in; what it may do depends on its roles in the project that it signs in to."""

    id: str
    name: str
    description: str
    email: str | None
    enabled: bool
    default_project_id: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A user's role in a project, with all names."""

    user_id: str
    user_name: str
    project_id: str
    project_name: str
    role: str


@dataclass(frozen=True, slots=True)
class Credential:
    """An application credential: a part of one user's roles in one project, for a program."""

    id: str
    name: str
    user_id: str
    project_id: str
    roles: tuple[str, ...]
    description: str
    unrestricted: bool
    """It may make further credentials."""
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Who:
    """A user or project as a client names it: by id, or by name."""

    id: str | None = None
    name: str | None = None
