"""Operations of administrators on projects and users, and checks of what they give."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection

from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from climate.domain.policy import Caller
from climate.identity import audit_trail, project_tree
from climate.identity.authentication.passwords import check_new
from climate.identity.models import Domain, Extra, NameOrId, Project, User
from climate.identity.store import domains, projects, unique, users
from climate.identity.store.revocations import PROJECT, USER

if TYPE_CHECKING:
    from climate.identity.context import Identity

LONGEST_NAME, LONGEST_USER_NAME = 64, 255
"""Maximum length of the name of a project and of a user, as in Keystone."""
LONGEST_TEXT = 255
MOST_EXTRA = 8192
"""Maximum length of the further attributes of a user or a project as JSON."""
MOST_TAGS = 80
"""Maximum number of tags of a project, as in Keystone."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
TAKEN = "This name is taken already"


@dataclass(frozen=True, slots=True)
class NewUser:
    """Fields of a user to create."""

    name: str
    password: str | None = field(default=None, repr=False)
    description: str = ""
    email: str | None = None
    enabled: bool = True
    default_project_id: str | None = None
    extra: Extra = field(default_factory=dict)
    domain_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewProject:
    """Fields of a project to create."""

    name: str
    description: str = ""
    enabled: bool = True
    parent_id: str | None = None
    tags: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)
    domain_id: str | None = None
    """Domain of the project; None is that of the project above it, or else the default one."""


def create_project(identity: "Identity", author: Caller, new: NewProject) -> Project:
    """Create a project.

    Raise Conflict when the name is taken in the domain, NotFound for an unknown domain or project above.
    """
    project = Project(
        id=uuid4().hex,
        name=check_name(new.name),
        description=check_text("description", new.description),
        enabled=new.enabled,
        parent_id=new.parent_id,
        tags=check_tags("tags", new.tags),
        extra=check_extra(new.extra),
        domain_id=new.domain_id,
    )
    with unique.begin(identity.engine, TAKEN) as conn:
        project = project_tree.placed(conn, project)
        domain_of(conn, project.domain_id)
        projects.add(conn, project)
        audit_trail.project_created(conn, author, project)
    return project


def change_project(identity: "Identity", author: Caller, project_id: str, changes: Mapping[str, Any]) -> Project:
    """Update a project; disabling it revokes its tokens."""
    wanted = _checked(changes, {"name", "description", "enabled", "tags"})
    with unique.begin(identity.engine, TAKEN) as conn:
        before = projects.lock(conn, project_id)
        if before is None:
            raise no_such("project", project_id)
        if changes.get("parent_id", before.parent_id) != before.parent_id:
            raise Forbidden("Update of parent_id is not allowed")
        if "extra" in changes:
            wanted["extra"] = check_extra({**before.extra, **changes["extra"]})
        project_tree.check_change(conn, before, wanted.get("enabled", before.enabled))
        if wanted:
            projects.change(
                conn, project_id, {**wanted, **({"tags": list(wanted["tags"])} if "tags" in wanted else {})}
            )
        if wanted.get("enabled") is False:
            identity.revoke(conn, PROJECT, project_id)
        project = replace(before, **wanted)
        audit_trail.project_changed(conn, author, before, project)
    identity.watch.announce()
    return project


def change_tag(identity: "Identity", author: Caller, project_id: str, tag: str, *, present: bool) -> None:
    """Add a tag to a project, or remove it; NotFound if the project lacks the tag to remove."""
    with identity.engine.begin() as conn:
        before = projects.lock(conn, project_id)
        if before is None:
            raise no_such("project", project_id)
        if not present and tag not in before.tags:
            raise no_such("project tag", tag)
        others = tuple(one for one in before.tags if one != tag)
        project = replace(before, tags=check_tags("tags", (*others, tag) if present else others))
        projects.change(conn, project_id, {"tags": list(project.tags)})
        audit_trail.project_changed(conn, author, before, project)


def remove_project(identity: "Identity", author: Caller, project_id: str) -> None:
    """Delete a project with its roles, application credentials, settings and tokens.

    Raise Conflict with the resources that it still has. A request that began earlier may still create one; its owner is
    then an unknown project, which administrators see.
    """
    with identity.engine.begin() as conn:
        users.lock_with_default(conn, project_id)
        drop_project(identity, conn, author, project_id)
    identity.watch.announce()


def drop_project(identity: "Identity", conn: Connection, author: Caller, project_id: str) -> None:
    """Delete a project in a transaction that has locked the users with this default project."""
    project = projects.lock(conn, project_id)
    if project is None:
        raise no_such("project", project_id)
    project_tree.check_removal(conn, project)
    left = identity.contents.count(conn, project_id)
    if left:
        resources = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in left.items())
        raise Conflict(f"Project {project.name} still has resources; delete them first: {resources}")
    audit_trail.project_deleted(conn, author, project)
    identity.revoke(conn, PROJECT, project_id)
    identity.contents.delete_settings(conn, author, project_id)
    projects.remove(conn, project_id)


def create_user(identity: "Identity", author: Caller, new: NewUser) -> User:
    """Create a user.

    Raise Conflict when the name is taken in the domain, NotFound for an unknown domain, InvalidInput for an unknown
    default project.
    """
    user = User(
        id=uuid4().hex,
        name=check_name(new.name, LONGEST_USER_NAME),
        description=check_text("description", new.description),
        email=None if new.email is None else check_text("email", new.email),
        enabled=new.enabled,
        default_project_id=new.default_project_id,
        extra=check_extra(new.extra),
        domain_id=new.domain_id,
    )
    kept = None if new.password is None else identity.passwords.hash(check_new(new.password))
    with unique.begin(identity.engine, TAKEN) as conn:
        _check_default(conn, new.default_project_id)
        domain_of(conn, new.domain_id)
        users.add(conn, user, kept)
        audit_trail.user_created(conn, author, user, password=kept is not None)
    return user


def change_user(identity: "Identity", author: Caller, user_id: str, changes: Mapping[str, Any]) -> User:
    """Update a user; a change of password or `enabled` revokes its tokens."""
    wanted = _checked(changes, {"description", "email", "enabled", "default_project_id"})
    if "name" in changes:
        wanted["name"] = check_name(changes["name"], LONGEST_USER_NAME)
    if changes.get("password") is not None:
        wanted["password_hash"] = identity.passwords.hash(check_new(changes["password"]))
    with unique.begin(identity.engine, TAKEN) as conn:
        before = users.lock(conn, user_id)
        if before is None:
            raise no_such("user", user_id)
        _check_default(conn, wanted.get("default_project_id"))
        if changes.get("extra"):
            wanted["extra"] = check_extra({**before.extra, **changes["extra"]})
        if wanted:
            users.change(conn, user_id, wanted)
        if wanted.keys() & {"password_hash", "enabled"}:
            identity.revoke(conn, USER, user_id)
        user = replace(before, **{name: value for name, value in wanted.items() if name != "password_hash"})
        audit_trail.user_changed(conn, author, before, user, password="password_hash" in wanted)
    identity.watch.announce()
    return user


def remove_user(identity: "Identity", author: Caller, user_id: str) -> None:
    """Delete a user with its roles, credentials and tokens; resources that it created stay with their projects."""
    with identity.engine.begin() as conn:
        drop_user(identity, conn, author, user_id)
    identity.watch.announce()


def drop_user(identity: "Identity", conn: Connection, author: Caller, user_id: str) -> None:
    """Delete a user in a transaction."""
    user = users.lock(conn, user_id)
    if user is None:
        raise no_such("user", user_id)
    audit_trail.user_deleted(conn, author, user)
    identity.revoke(conn, USER, user_id)
    users.remove(conn, user_id)


def domain_of(conn: Connection, domain_id: str | None) -> Domain:
    """Return a domain, which stays as it is until the transaction ends. Raise NotFound."""
    domain = domains.find(conn, domain_id, share=True)
    if domain is None:
        raise no_such("domain", domain_id or "")
    return domain


def no_such(noun: str, name: str) -> NotFound:
    """Return the error for an unknown id."""
    return NotFound(f"Could not find {noun}: {name[:80]}.")


def check_name(name: object, longest: int = LONGEST_NAME) -> str:
    """Return a valid name. Raise InvalidInput that gives the rules."""
    if not isinstance(name, str) or not name.strip() or len(name) > longest or CONTROL.search(name):
        raise InvalidInput(f"name must be a text of 1 to {longest} characters, and no control characters")
    return name


def check_text(field_name: str, value: object) -> str:
    """Return a valid short text. Raise InvalidInput that names the field."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InvalidInput(f"{field_name} must be a text of at most {LONGEST_TEXT} characters")
    return value


def check_tags(field_name: str, value: Any) -> tuple[str, ...]:
    """Return valid tags of a project. Raise InvalidInput that gives the rules."""
    if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
        raise InvalidInput(f"{field_name} must be a list of texts")
    for tag in value:
        check_tag(tag)
    if len(value) > MOST_TAGS or len(set(value)) < len(value):
        raise InvalidInput(f"{field_name} must be at most {MOST_TAGS}, each once; got {len(value)}")
    return tuple(value)


def check_tag(tag: str) -> str:
    """Return a valid tag. Raise InvalidInput that gives the rules."""
    if not 1 <= len(tag) <= LONGEST_TEXT or "/" in tag or "," in tag or CONTROL.search(tag):
        raise InvalidInput(f"A tag must have 1 to {LONGEST_TEXT} characters, without / and comma; got {tag[:40]!r}")
    return tag


def check_extra(value: Mapping[str, object]) -> Extra:
    """Return the further attributes. Raise InvalidInput if they are too long."""
    length = len(json.dumps(value))
    if length > MOST_EXTRA:
        raise InvalidInput(f"Further attributes must have at most {MOST_EXTRA} characters as JSON, not {length}")
    return dict(value)


def _flag(field_name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{field_name} must be true or false")
    return value


def _optional(field_name: str, value: object) -> str | None:
    return None if value is None else check_text(field_name, value)


CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "name": lambda _field, value: check_name(value),
    "description": lambda field_name, value: check_text(field_name, value or ""),
    "email": _optional,
    "default_project_id": _optional,
    "enabled": _flag,
    "tags": check_tags,
}


def _checked(changes: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    return {key: CHECKS[key](key, value) for key, value in changes.items() if key in known}


def _check_default(conn: Connection, project_id: str | None) -> None:
    if project_id is not None and projects.find(conn, NameOrId(id=project_id)) is None:
        raise InvalidInput("default_project_id is not the id of a project")
