"""Operations of administrators on groups: create, update and delete, and their members.

A change locks the group, then its members in the order of their ids, and then a project. A sign-in that reads the roles
of a user therefore waits for it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection

from climate.domain.errors import NotFound
from climate.domain.policy import Caller
from climate.identity import audit_trail
from climate.identity.models import Extra, Group, User
from climate.identity.projects_and_users import check_extra, check_name, check_text, domain_of, no_such
from climate.identity.store import groups as store
from climate.identity.store import unique, users
from climate.identity.store.revocations import USER

if TYPE_CHECKING:
    from climate.identity.context import Identity

TAKEN = "A group of this name exists already in the domain"


def create(
    identity: "Identity",
    author: Caller,
    name: str,
    description: str = "",
    domain_id: str | None = None,
    extra: Extra | None = None,
) -> Group:
    """Create a group. Raise Conflict when the name is taken in the domain, NotFound for an unknown domain."""
    text = check_text("description", description)
    group = Group(uuid4().hex, check_name(name), text, domain_id, check_extra(extra or {}))
    with unique.begin(identity.engine, TAKEN) as conn:
        domain_of(conn, domain_id)
        store.add(conn, group)
        audit_trail.group_changed(conn, author, None, group)
    return group


def change(identity: "Identity", author: Caller, group_id: str, changes: Mapping[str, Any]) -> Group:
    """Update the name, description or further attributes of a group."""
    wanted: dict[str, Any] = {}
    if "name" in changes:
        wanted["name"] = check_name(changes["name"])
    if "description" in changes:
        wanted["description"] = check_text("description", changes["description"])
    with unique.begin(identity.engine, TAKEN) as conn:
        before = lock(conn, group_id)
        if changes.get("extra"):
            wanted["extra"] = check_extra({**before.extra, **changes["extra"]})
        if wanted:
            store.change(conn, group_id, wanted)
        group = replace(before, **wanted)
        audit_trail.group_changed(conn, author, before, group)
    return group


def remove(identity: "Identity", author: Caller, group_id: str) -> None:
    """Delete a group, and revoke the tokens of its members, which lose its roles."""
    with identity.engine.begin() as conn:
        drop_group(identity, conn, author, group_id)
    identity.watch.announce()


def drop_group(identity: "Identity", conn: Connection, author: Caller, group_id: str) -> None:
    """Delete a group in a transaction."""
    group = lock(conn, group_id)
    identity.revoke_all(conn, USER, lock_members(conn, group_id))
    audit_trail.group_changed(conn, author, group, None)
    store.remove(conn, group_id)


def add_member(identity: "Identity", author: Caller, group_id: str, user_id: str) -> None:
    """Add a user to a group; tokens that it requests from now on have the roles of the group."""
    with identity.engine.begin() as conn:
        group, user = lock(conn, group_id), _lock_user(conn, user_id)
        if store.add_member(conn, group_id, user_id):
            audit_trail.member_changed(conn, author, group, user, is_member=True)


def remove_member(identity: "Identity", author: Caller, group_id: str, user_id: str) -> None:
    """Remove a user from a group, and revoke its tokens."""
    with identity.engine.begin() as conn:
        group, user = lock(conn, group_id), _lock_user(conn, user_id)
        if not store.remove_member(conn, group_id, user_id):
            raise NotFound(f"User {user.name} is not in group {group.name}")
        identity.revoke(conn, USER, user_id)
        audit_trail.member_changed(conn, author, group, user, is_member=False)
    identity.watch.announce()


def lock(conn: Connection, group_id: str) -> Group:
    """Return a group, which nobody else changes until the transaction ends. Raise NotFound."""
    group = store.lock(conn, group_id)
    if group is None:
        raise no_such("group", group_id)
    return group


def lock_members(conn: Connection, group_id: str) -> list[str]:
    """Lock a group, and return its members, which cannot sign in until the transaction ends. Raise NotFound."""
    lock(conn, group_id)
    members = list(store.members(conn, group_id))
    users.lock_all(conn, members)
    return members


def _lock_user(conn: Connection, user_id: str) -> User:
    user = users.lock(conn, user_id)
    if user is None:
        raise no_such("user", user_id)
    return user
