"""Tokens, users, projects, roles and application credentials."""

from typing import NotRequired, TypedDict


class Endpoint(TypedDict, total=False):
    """A URL of a service, in one region and for one kind of callers."""

    id: str
    interface: str
    region: str | None
    region_id: str | None
    url: str


class CatalogEntry(TypedDict, total=False):
    """A service of the catalog with its URLs."""

    id: str
    name: str
    type: str
    endpoints: list[Endpoint]


class NamedRole(TypedDict):
    """A role."""

    id: str
    name: str


class TokenUser(TypedDict):
    """The user of a token."""

    id: str
    name: str


class TokenBody(TypedDict, total=False):
    """A token: its user, roles and catalog, and its time of validity."""

    user: TokenUser
    project: dict[str, object]
    system: dict[str, object]
    roles: list[NamedRole]
    catalog: list[CatalogEntry]
    issued_at: str
    expires_at: str


class Account(TypedDict):
    """A user, project or role; each sort has further keys."""

    id: str
    name: str
    enabled: NotRequired[bool]
    description: NotRequired[str | None]


class Named(TypedDict, total=False):
    """A user, a group or a role of an assignment; its name comes with `include_names`."""

    id: str
    name: str


class RoleAssignment(TypedDict):
    """A role of a user or a group, in a project, a domain or the system."""

    role: Named
    user: NotRequired[Named]
    group: NotRequired[Named]
    scope: NotRequired[dict[str, object]]


class Credential(TypedDict):
    """An application credential; a new one has its secret."""

    id: str
    name: str
    description: str | None
    project_id: str
    unrestricted: bool
    expires_at: str | None
    roles: list[NamedRole]
    secret: NotRequired[str]
