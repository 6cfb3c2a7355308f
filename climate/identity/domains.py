"""Operations of administrators on domains: create, update and delete.

A sign-in locks the user, then the project, then their domains. The deletion of a domain locks its groups, and then in
this order too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection

from climate.domain.errors import Conflict, Forbidden
from climate.domain.policy import Caller
from climate.identity import audit_trail, projects_and_users
from climate.identity.groups import drop_group
from climate.identity.models import DOMAIN_ID, DOMAIN_NAME, Domain, Extra
from climate.identity.projects_and_users import check_extra, check_name, check_text, no_such
from climate.identity.roles import drop_role
from climate.identity.store import domains as store
from climate.identity.store import groups, projects, unique, users
from climate.identity.store.revocations import PROJECT, USER

if TYPE_CHECKING:
    from climate.identity.context import Identity

TAKEN = "A domain of this name exists already"
FIXED = f"Domain {DOMAIN_NAME} cannot be changed or deleted: this cloud's own accounts are in it"


def create(
    identity: "Identity",
    author: Caller,
    name: str,
    description: str = "",
    *,
    enabled: bool = True,
    extra: Extra | None = None,
) -> Domain:
    """Create a domain. Raise Conflict when the name is taken, in capitals or not."""
    text = check_text("description", description)
    domain = Domain(uuid4().hex, check_name(name), text, enabled, check_extra(extra or {}))
    with unique.begin(identity.engine, TAKEN) as conn:
        _check_name(domain.name)
        store.add(conn, domain)
        audit_trail.domain_changed(conn, author, None, domain)
    return domain


def change(identity: "Identity", author: Caller, domain_id: str, changes: Mapping[str, Any]) -> Domain:
    """Update a domain; disabling it revokes the tokens of its users, and those for its projects."""
    wanted = {name: changes[name] for name in ("name", "description", "enabled") if name in changes}
    if "name" in wanted:
        _check_name(check_name(wanted["name"]))
    if "description" in wanted:
        check_text("description", wanted["description"])
    with unique.begin(identity.engine, TAKEN) as conn:
        before = _lock(conn, domain_id)
        if changes.get("extra"):
            wanted["extra"] = check_extra({**before.extra, **changes["extra"]})
        if wanted:
            store.change(conn, domain_id, wanted)
        if before.enabled and wanted.get("enabled") is False:
            identity.revoke_all(conn, USER, store.user_ids(conn, domain_id))
            identity.revoke_all(conn, PROJECT, store.project_ids(conn, domain_id))
        domain = replace(before, **wanted)
        audit_trail.domain_changed(conn, author, before, domain)
    identity.watch.announce()
    return domain


def remove(identity: "Identity", author: Caller, domain_id: str) -> None:
    """Delete a disabled domain with its users, groups, projects and roles.

    Raise Forbidden if it is enabled, and Conflict if one of its projects has resources or if its contents change
    meanwhile.
    """
    with identity.engine.begin() as conn:
        before = teams, members, owned = _contents(conn, domain_id)
        for group_id in teams:
            groups.lock(conn, group_id)
        users.lock_all(conn, members, owned)
        for project_id in owned:
            projects.lock(conn, project_id)
        domain = _lock(conn, domain_id)
        if domain.enabled:
            raise Forbidden(f"Domain {domain.name} is enabled; disable it before you delete it")
        if before != _contents(conn, domain_id):
            raise Conflict(f"Users, groups or projects of domain {domain.name} changed meanwhile; delete it again")
        for project_id in owned:
            projects_and_users.drop_project(identity, conn, author, project_id)
        for user_id in members:
            projects_and_users.drop_user(identity, conn, author, user_id)
        for group_id in teams:
            drop_group(identity, conn, author, group_id)
        for role_id in store.role_ids(conn, domain_id):
            drop_role(identity, conn, author, role_id)
        audit_trail.domain_changed(conn, author, domain, None)
        store.remove(conn, domain_id)
    identity.watch.announce()


def _contents(conn: Connection, domain_id: str) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return the ids of the groups, the users and the projects in a domain."""
    return store.group_ids(conn, domain_id), store.user_ids(conn, domain_id), store.project_ids(conn, domain_id)


def _lock(conn: Connection, domain_id: str) -> Domain:
    if domain_id == DOMAIN_ID:
        raise Forbidden(FIXED)
    domain = store.lock(conn, domain_id)
    if domain is None:
        raise no_such("domain", domain_id)
    return domain


def _check_name(name: str) -> None:
    if name.lower() == DOMAIN_NAME.lower():
        raise Conflict(TAKEN)
