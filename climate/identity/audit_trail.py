"""Audit entries for changes of users, projects, roles and credentials, recorded in the transaction of the change.

No entry holds a password, a secret or a hash. It only records that one was set.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from climate.domain.audit_trail import Action, AuditKind, ObjectChanged, changed
from climate.domain.policy import Caller
from climate.identity.models import Credential, Domain, Group, Project, Role, User
from climate.identity.store import assignments, credentials, revocations
from climate.identity.store.assignments import Filter
from climate.store.journal import audit_trail

SETUP = Caller("climate:setup", "")
"""Author of the first users and projects."""

Values = Mapping[str, object]

ABSENT = ("domain_id", "extra", "parent_id", "tags")
"""Values that an entry leaves out where they are empty."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """The object that changes."""

    kind: AuditKind
    id: str
    name: str
    project_id: str | None = None


def user_created(conn: Connection, author: Caller, user: User, *, password: bool) -> None:
    after = {**_user(user), "password": "set" if password else None}
    _record(conn, author, _Subject(AuditKind.USER, user.id, user.name), None, after)


def user_changed(conn: Connection, author: Caller, before: User, after: User, *, password: bool) -> None:
    """Record the fields that differ; of a password, only that it was changed."""
    old, new = changed(_user(before), _user(after))
    if password:
        new = {**new, "password": "changed"}
    if new:
        _record(conn, author, _Subject(AuditKind.USER, after.id, after.name), old, new)


def user_deleted(conn: Connection, author: Caller, user: User) -> None:
    """Record the deletion of a user, with the roles and credentials that are deleted with it."""
    roles = [
        f"{one.role_name} in {one.project_id or 'the system'}"
        for one in assignments.listing(conn, Filter(user_id=user.id))
    ]
    names = [one.name for one in credentials.listing(conn, user.id)]
    before = {**_user(user), "roles": roles, "application_credentials": names}
    _record(conn, author, _Subject(AuditKind.USER, user.id, user.name), before, None)


def project_created(conn: Connection, author: Caller, project: Project) -> None:
    _record(conn, author, _Subject(AuditKind.PROJECT, project.id, project.name, project.id), None, _project(project))


def project_changed(conn: Connection, author: Caller, before: Project, after: Project) -> None:
    """Record the fields that differ."""
    old, new = changed(_project(before), _project(after))
    if new:
        _record(conn, author, _Subject(AuditKind.PROJECT, after.id, after.name, after.id), old, new)


def project_deleted(conn: Connection, author: Caller, project: Project) -> None:
    """Record the deletion of a project, with the roles and credentials that are deleted with it."""
    roles = [f"{one.role_name} of {one.user_id}" for one in assignments.listing(conn, Filter(project_id=project.id))]
    names = [f"{one.name} of {one.user_id}" for one in credentials.of_project(conn, project.id)]
    before = {**_project(project), "roles": roles, "application_credentials": names}
    _record(conn, author, _Subject(AuditKind.PROJECT, project.id, project.name, project.id), before, None)


def role_given(conn: Connection, author: Caller, to: User | Group, project_id: str | None, role: str) -> None:
    _record(conn, author, _Subject(AuditKind.ROLE, to.id, to.name, project_id), None, _role_fields(project_id, role))


def role_taken(conn: Connection, author: Caller, of: User | Group, project_id: str | None, role: str) -> None:
    _record(conn, author, _Subject(AuditKind.ROLE, of.id, of.name, project_id), _role_fields(project_id, role), None)


def _role_fields(project_id: str | None, role: str) -> Values:
    return {"role": role} if project_id is not None else {"role": role, "system": "all"}


def role_changed(conn: Connection, author: Caller, before: Role | None, after: Role | None) -> None:
    """Record that a role was created, changed or deleted."""
    one = after or before
    if one is None or before == after:
        return
    _record(conn, author, _Subject(AuditKind.ROLE, one.id, one.name), _role(before), _role(after))


def role_implied(conn: Connection, author: Caller, prior: Role, implied: Role, *, is_implied: bool) -> None:
    """Record that a role implies another from now on, or no more."""
    rule, none = {"implies": implied.name}, None
    subject = _Subject(AuditKind.ROLE, prior.id, prior.name)
    _record(conn, author, subject, *((none, rule) if is_implied else (rule, none)))


def domain_changed(conn: Connection, author: Caller, before: Domain | None, after: Domain | None) -> None:
    """Record that a domain was created, changed or deleted."""
    _whole_changed(conn, author, AuditKind.DOMAIN, before, after)


def group_changed(conn: Connection, author: Caller, before: Group | None, after: Group | None) -> None:
    """Record that a group was created, changed or deleted."""
    _whole_changed(conn, author, AuditKind.GROUP, before, after)


def member_changed(conn: Connection, author: Caller, group: Group, user: User, *, is_member: bool) -> None:
    """Record that a user was added to a group or removed from it."""
    old, new = {"member": user.id}, None
    subject = _Subject(AuditKind.GROUP, group.id, group.name)
    _record(conn, author, subject, *((new, old) if is_member else (old, new)))


def _whole_changed(
    conn: Connection, author: Caller, kind: AuditKind, before: Domain | Group | None, after: Domain | Group | None
) -> None:
    one = after or before
    if one is None or before == after:
        return
    _record(conn, author, _Subject(kind, one.id, one.name), _values(before), _values(after))


def _values(one: Domain | Group | None) -> Values | None:
    return None if one is None else _filled({name: value for name, value in asdict(one).items() if name != "id"})


def credential_created(conn: Connection, author: Caller, credential: Credential) -> None:
    _record(conn, author, _of_credential(credential), None, _credential(credential))


def credential_deleted(conn: Connection, author: Caller, credential: Credential) -> None:
    _record(conn, author, _of_credential(credential), _credential(credential), None)


def _of_credential(credential: Credential) -> _Subject:
    return _Subject(AuditKind.CREDENTIAL, credential.id, credential.name, credential.project_id)


def _record(conn: Connection, author: Caller, of: _Subject, before: Values | None, after: Values | None) -> None:
    action = Action.CREATED if before is None else Action.DELETED if after is None else Action.CHANGED
    at = revocations.clock(conn)
    audit_trail.record(conn, author, ObjectChanged(at, of.kind, of.id, action, of.name, of.project_id, before, after))


def _user(user: User) -> dict[str, object]:
    return _filled({name: value for name, value in asdict(user).items() if name != "id"})


def _role(role: Role | None) -> Values | None:
    return None if role is None else _filled({name: value for name, value in asdict(role).items() if name != "id"})


def _project(project: Project) -> dict[str, object]:
    return _filled({name: value for name, value in asdict(project).items() if name != "id"})


def _filled(values: dict[str, object]) -> dict[str, object]:
    """Leave out what most users and projects do not have."""
    return {name: value for name, value in values.items() if value or name not in ABSENT}


def _credential(credential: Credential) -> dict[str, object]:
    """Return the audited fields of a credential, without its secret."""
    known = {name: value for name, value in asdict(credential).items() if name not in ("id", "project_id")}
    expires = credential.expires_at
    return {**known, "roles": list(credential.roles), "expires_at": expires.isoformat() if expires else None}
