"""JSON views of Identity."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from api.request_context import deployment, identity
from climate.identity import read_operations
from climate.identity.models import DOMAIN_ID, ROLES, Assignment, Credential, Domain, Group, Project, Role, User

Body = dict[str, object]


def links(path: str) -> Body:
    """Return the `links` of one resource."""
    return {"self": f"{deployment().settings.base_url}/identity/v3/{path}"}


def listing(key: str, values: Sequence[Body]) -> Body:
    """Return a list, which is never paged."""
    return {key: list(values), "links": {**links(key), "next": None, "previous": None}}


def domain_of(domain_id: str | None) -> Body:
    """Return id and name of the domain of a user or a project; the default one needs no SQL."""
    return domain_name(read_operations.domain(identity(), domain_id))


def domain_name(one: Domain) -> Body:
    """Return id and name of a domain."""
    return {"id": one.id, "name": one.name}


def domain(one: Domain) -> Body:
    return {
        **one.extra,
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "enabled": one.enabled,
        "tags": [],
        "options": {},
        "links": links(f"domains/{one.id}"),
    }


def group(one: Group) -> Body:
    return {
        **one.extra,
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "domain_id": one.domain_id or DOMAIN_ID,
        "links": links(f"groups/{one.id}"),
    }


def project(one: Project) -> Body:
    return {
        **one.extra,
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "enabled": one.enabled,
        "domain_id": one.domain_id or DOMAIN_ID,
        "parent_id": one.parent_id or one.domain_id or DOMAIN_ID,
        "is_domain": False,
        "tags": list(one.tags),
        "options": {},
        "links": links(f"projects/{one.id}"),
    }


def user(one: User) -> Body:
    return {
        **one.extra,
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "email": one.email,
        "enabled": one.enabled,
        "domain_id": one.domain_id or DOMAIN_ID,
        "default_project_id": one.default_project_id,
        "password_expires_at": None,
        "options": {},
        "links": links(f"users/{one.id}"),
    }


def role(one: Role) -> Body:
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description or None,
        "domain_id": one.domain_id,
        "options": {"immutable": True} if one.id in ROLES else {},
        "links": links(f"roles/{one.id}"),
    }


def assignment(one: Assignment, domains: Mapping[str, Body] | None = None) -> Body:
    """Return an assignment; with id and name of each domain by its id, it has the names of all that it names."""
    holder: Body = {"id": one.user_id}
    kind = "group" if one.of_group else "user"
    role_: Body = {"id": one.role}
    scope: Body = {"system": {"all": True}}
    place = "system"
    if one.project_id is not None:
        place = f"projects/{one.project_id}"
        scope = {"project": {"id": one.project_id}}
    if domains is not None:
        holder |= {"name": one.user_name, "domain": domains[one.user_domain_id or DOMAIN_ID]}
        role_ |= {"name": one.role_name}
    if domains is not None and one.project_id is not None:
        domain_ = domains[one.project_domain_id or DOMAIN_ID]
        scope = {"project": {"id": one.project_id, "name": one.project_name, "domain": domain_}}
    return {
        kind: holder,
        "role": role_,
        "scope": scope,
        "links": {"assignment": links(f"{place}/{kind}s/{one.user_id}/roles/{one.role}")["self"]},
    }


def credential(one: Credential, roles: Sequence[Role], secret: str | None = None) -> Body:
    path = f"users/{one.user_id}/application_credentials/{one.id}"
    details = {} if secret is None else {"secret": secret}
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "user_id": one.user_id,
        "project_id": one.project_id,
        "system": None,
        "roles": [{"id": role.id, "name": role.name, "domain_id": None} for role in roles],
        "expires_at": one.expires_at and one.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        "unrestricted": one.unrestricted,
        "links": links(path),
        **details,
    }


def moment(seconds: float) -> str:
    """Return a time as ISO 8601 with microseconds and Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
