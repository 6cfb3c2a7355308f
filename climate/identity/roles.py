"""Operations of administrators on roles: create, update and delete, and their assignment to users."""

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import Connection

from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from climate.domain.policy import ADMIN, Caller
from climate.identity import audit_trail, groups
from climate.identity.models import ROLES, Group, NameOrId, Role, User
from climate.identity.projects_and_users import check_name, check_text, domain_of, no_such
from climate.identity.store import assignments, projects, unique, users
from climate.identity.store import roles as store
from climate.identity.store.assignments import Holder
from climate.identity.store.revocations import ROLE, role_subject

if TYPE_CHECKING:
    from climate.identity.context import Identity

LONGEST_NAME = 255
TAKEN = "A role of this name exists already"


def create(
    identity: "Identity", author: Caller, name: str, description: str = "", domain_id: str | None = None
) -> Role:
    """Create a role. Raise Conflict when the name is taken, in capitals or not, and NotFound for an unknown domain."""
    role = Role(uuid4().hex, check_name(name, LONGEST_NAME), check_text("description", description), domain_id)
    with unique.begin(identity.engine, TAKEN) as conn:
        domain_of(conn, domain_id)
        _check_free(conn, role.name, domain_id)
        store.add(conn, role)
        audit_trail.role_changed(conn, author, None, role)
    return role


def change(identity: "Identity", author: Caller, role_id: str, name: str | None, description: str | None) -> Role:
    """Update a role; None keeps a value. Tokens keep the name that the role had when they were issued."""
    with unique.begin(identity.engine, TAKEN) as conn:
        before = _lock(conn, role_id)
        role = before
        if name is not None:
            role = replace(role, name=check_name(name, LONGEST_NAME))
        if description is not None:
            role = replace(role, description=check_text("description", description))
        if role.name.lower() != before.name.lower():
            _check_free(conn, role.name, role.domain_id)
        store.change(conn, role)
        audit_trail.role_changed(conn, author, before, role)
    return role


def remove(identity: "Identity", author: Caller, role_id: str) -> None:
    """Delete a role, take it from all users, and revoke their tokens for the projects in which they had it."""
    with identity.engine.begin() as conn:
        drop_role(identity, conn, author, role_id)
    identity.watch.announce()


def drop_role(identity: "Identity", conn: Connection, author: Caller, role_id: str) -> None:
    """Delete a role in a transaction."""
    role = _lock(conn, role_id)
    audit_trail.role_changed(conn, author, role, None)
    for user_id, project_id in store.holders(conn, role_id):
        identity.revoke(conn, ROLE, role_subject(user_id, project_id), user_id)
    store.remove(conn, role_id)


def assign(identity: "Identity", author: Caller, holder: Holder, project_id: str | None, role_id: str) -> None:
    """Assign a role in a project or, without one, in the system to a user or a group."""
    with identity.engine.begin() as conn:
        to, role = _check_triple(conn, holder, project_id, role_id)
        if assignments.add(conn, holder, project_id, role_id):
            audit_trail.role_given(conn, author, to, project_id, role.name)


def take(identity: "Identity", author: Caller, holder: Holder, project_id: str | None, role_id: str) -> None:
    """Remove a role in a project or in the system from a user or a group.

    Tokens for that scope are revoked: those of the user, or of the members of the group.
    """
    with identity.engine.begin() as conn:
        concerned = groups.lock_members(conn, holder.id) if holder.is_group else [holder.id]
        of, role = _check_triple(conn, holder, project_id, role_id)
        if not assignments.remove(conn, holder, project_id, role_id):
            raise NotFound(f"The {'group' if holder.is_group else 'user'} does not have this role there")
        audit_trail.role_taken(conn, author, of, project_id, role.name)
        for user_id in concerned:
            identity.revoke(conn, ROLE, role_subject(user_id, project_id), user_id)
    identity.watch.announce()


def imply(identity: "Identity", author: Caller, prior_id: str, implied_id: str) -> tuple[Role, Role]:
    """Let those who have a role have another one too, in tokens that they request from now on; return both roles.

    Raise Forbidden for the role admin, which nobody has without its own assignment, and for two default roles. Raise it
    also for a role of a domain that one of no domain would imply.
    """
    with identity.engine.begin() as conn:
        prior, implied = _pair(conn, prior_id, implied_id)
        if implied_id == ADMIN or {prior_id, implied_id} <= set(ROLES):
            raise Forbidden(f"Role {prior.name} cannot imply {implied.name}: that role, or the rule, is a default one")
        if prior.domain_id is None and implied.domain_id is not None:
            raise Forbidden(f"Role {prior.name} belongs to no domain, and cannot imply {implied.name}, which does")
        if prior_id == implied_id:
            raise InvalidInput(f"Role {prior.name} cannot imply itself")
        if store.add_rule(conn, prior_id, implied_id):
            audit_trail.role_implied(conn, author, prior, implied, is_implied=True)
    return prior, implied


def end_implication(identity: "Identity", author: Caller, prior_id: str, implied_id: str) -> None:
    """Let a role imply another no more, and revoke the tokens of those who have it in the projects where they do."""
    with identity.engine.begin() as conn:
        users.lock_all(conn, {user_id for user_id, _ in store.holders(conn, prior_id)})
        prior, implied = _pair(conn, prior_id, implied_id)
        holders = store.holders(conn, prior_id)
        if not store.remove_rule(conn, prior_id, implied_id):
            raise NotFound(f"Role {prior.name} does not imply {implied.name}")
        audit_trail.role_implied(conn, author, prior, implied, is_implied=False)
        for user_id, project_id in holders:
            identity.revoke(conn, ROLE, role_subject(user_id, project_id), user_id)
    identity.watch.announce()


def _pair(conn: Connection, prior_id: str, implied_id: str) -> tuple[Role, Role]:
    first, second = (store.find(conn, role_id, share=True) for role_id in (prior_id, implied_id))
    if first is None or second is None:
        raise no_such("role", prior_id if first is None else implied_id)
    return first, second


def _lock(conn: Connection, role_id: str) -> Role:
    if role_id in ROLES:
        raise Forbidden(f"Role {role_id} is a default role, which cannot be changed or deleted")
    role = store.lock(conn, role_id)
    if role is None:
        raise no_such("role", role_id)
    return role


def _check_free(conn: Connection, name: str, domain_id: str | None) -> None:
    if store.is_name_taken(conn, name, domain_id):
        raise Conflict(TAKEN)


def _check_triple(conn: Connection, holder: Holder, project_id: str | None, role_id: str) -> tuple[User | Group, Role]:
    found = groups.lock(conn, holder.id) if holder.is_group else users.lock(conn, holder.id)
    if found is None:
        raise no_such("group" if holder.is_group else "user", holder.id)
    project = None if project_id is None else projects.find(conn, NameOrId(id=project_id), share=True)
    if project_id is not None and project is None:
        raise no_such("project", project_id)
    role = store.find(conn, role_id, share=True)
    if role is None:
        raise no_such("role", role_id)
    if role.domain_id is not None and (project is None or project.domain_id != role.domain_id):
        raise Forbidden(f"Role {role.name} belongs to a domain, and is assigned in projects of that domain only")
    return found, role
