"""The bundled cloud for requests of administrators: what they change is in the audit trail, with who asked."""

from dataclasses import replace

from sqlalchemy import Connection

from api.request_context import caller, compute
from climate.compute import Compute
from climate.compute.changes import Change
from climate.domain.audit import Action, ObjectChanged, changed
from climate.store.journal import audit


def audited() -> Compute:
    """Return the cloud, which writes down what is changed as a change of the caller's."""
    return replace(compute(), tell_change=record)


def record(conn: Connection, change: Change) -> None:
    """Write a change down in the transaction in which it is made; nothing where nothing differs."""
    before, after = change.before, change.after
    if before is not None and after is not None:
        before, after = changed(before, after)
        if not after:
            return
    action = Action.CREATED if before is None else Action.DELETED if after is None else Action.CHANGED
    at = compute().now(conn)
    fact = ObjectChanged(at, change.kind, change.object_id, action, change.name, change.project_id, before, after)
    audit.record(conn, caller(), fact)
