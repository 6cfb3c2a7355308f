"""The audit trail: changes of the cloud are recorded, and administrators read all of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.audit_trail import Action, AuditKind, ObjectChanged, changed
from climate.domain.policy import Caller, require
from climate.store.journal import audit_trail
from climate.store.journal.audit_trail import AuditEntry, AuditQuery

__all__ = ["AuditEntry", "AuditQuery", "ObjectChange", "listed", "record"]


class ObjectChange(Protocol):
    """Change of one object. `before` is None for a new object, `after` for a deleted one; no secrets."""

    @property
    def kind(self) -> AuditKind: ...
    @property
    def object_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def project_id(self) -> str | None: ...
    @property
    def before(self) -> Mapping[str, object] | None: ...
    @property
    def after(self) -> Mapping[str, object] | None: ...


def listed(climate: Climate, caller: Caller, query: AuditQuery) -> list[AuditEntry]:
    """Return changes of limits, pools, hosts, users and so on, newest first."""
    require(caller, "audit:get")
    with reading(climate.engine) as conn:
        return audit_trail.listed(conn, query)


def record(conn: Connection, caller: Caller, at: datetime, change: ObjectChange) -> None:
    """Record a change in its transaction; nothing when both sides are equal."""
    before, after = change.before, change.after
    if before is not None and after is not None:
        before, after = changed(before, after)
        if not after:
            return
    action = Action.CREATED if before is None else Action.DELETED if after is None else Action.CHANGED
    fact = ObjectChanged(at, change.kind, change.object_id, action, change.name, change.project_id, before, after)
    audit_trail.record(conn, caller, fact)
