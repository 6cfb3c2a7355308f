"""JSON views of Identity."""

from collections.abc import Sequence
from datetime import UTC, datetime

from api.request_context import deployment
from climate.identity.models import DOMAIN_ID, DOMAIN_NAME, Assignment, Credential, Project, User

Body = dict[str, object]

DOMAIN = {"id": DOMAIN_ID, "name": DOMAIN_NAME}


def links(path: str) -> Body:
    """Return the `links` of one resource."""
    return {"self": f"{deployment().settings.base_url}/identity/v3/{path}"}


def listing(key: str, values: Sequence[Body]) -> Body:
    """Return a list, which is never paged."""
    return {key: list(values), "links": {**links(key), "next": None, "previous": None}}


def domain() -> Body:
    return {**DOMAIN, "description": "", "enabled": True, "options": {}, "links": links(f"domains/{DOMAIN_ID}")}


def project(one: Project) -> Body:
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "enabled": one.enabled,
        "domain_id": DOMAIN_ID,
        "parent_id": DOMAIN_ID,
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": links(f"projects/{one.id}"),
    }


def user(one: User) -> Body:
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "email": one.email,
        "enabled": one.enabled,
        "domain_id": DOMAIN_ID,
        "default_project_id": one.default_project_id,
        "password_expires_at": None,
        "options": {},
        "links": links(f"users/{one.id}"),
    }


def role(name: str) -> Body:
    return {
        "id": name,
        "name": name,
        "description": None,
        "domain_id": None,
        "options": {},
        "links": links(f"roles/{name}"),
    }


def assignment(one: Assignment, *, names: bool) -> Body:
    user_: Body = {"id": one.user_id}
    project_: Body = {"id": one.project_id}
    role_: Body = {"id": one.role}
    path = f"projects/{one.project_id}/users/{one.user_id}/roles/{one.role}"
    if names:
        user_ |= {"name": one.user_name, "domain": DOMAIN}
        project_ |= {"name": one.project_name, "domain": DOMAIN}
        role_ |= {"name": one.role}
    return {
        "user": user_,
        "role": role_,
        "scope": {"project": project_},
        "links": {"assignment": links(path)["self"]},
    }


def credential(one: Credential, secret: str | None = None) -> Body:
    path = f"users/{one.user_id}/application_credentials/{one.id}"
    details = {} if secret is None else {"secret": secret}
    return {
        "id": one.id,
        "name": one.name,
        "description": one.description,
        "user_id": one.user_id,
        "project_id": one.project_id,
        "system": None,
        "roles": [{"id": name, "name": name, "domain_id": None} for name in one.roles],
        "expires_at": one.expires_at and one.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        "unrestricted": one.unrestricted,
        "links": links(path),
        **details,
    }


def moment(seconds: float) -> str:
    """Return a time as ISO 8601 with microseconds and Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
