"""The audit trail, read by administrators."""

from climate.connections import reading
from climate.context import Climate
from climate.domain.policy import Caller, require
from climate.store.journal import audit
from climate.store.journal.audit import AuditEntry, AuditQuery

__all__ = ["AuditEntry", "AuditQuery", "listed"]


def listed(climate: Climate, caller: Caller, wanted: AuditQuery) -> list[AuditEntry]:
    """Return changes of limits, pools, hosts, users and so on, newest first."""
    require(caller, "audit:get")
    with reading(climate.engine) as conn:
        return audit.listed(conn, wanted)
