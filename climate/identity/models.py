"""Projects, users, roles and credentials as plain values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from climate.domain.policy import ADMIN, IMPLIED, MEMBER, READER

DOMAIN_ID, DOMAIN_NAME = "default", "Default"
"""The only domain; it has no row of its own."""

ROLES = (ADMIN, MEMBER, READER)
"""Roles; the id of a role is its name."""


def implied(roles: Iterable[str]) -> frozenset[str]:
    """Return the roles, and those that they imply."""
    return frozenset(inner for role in roles for inner in IMPLIED[role])


@dataclass(frozen=True, slots=True)
class Project:
    """A project: owner of leases and servers."""

    id: str
    name: str
    description: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class User:
    """A user, who signs in; permissions depend on its roles in the project of the token."""

    id: str
    name: str
    description: str
    email: str | None
    enabled: bool
    default_project_id: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role of a user in a project, with all names."""

    user_id: str
    user_name: str
    project_id: str
    project_name: str
    role: str


@dataclass(frozen=True, slots=True)
class Credential:
    """An application credential: a subset of one user's roles in one project, for a program."""

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
