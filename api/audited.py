"""Audit of changes that administrators make to the bundled cloud by its API."""

from dataclasses import replace

from api.request_context import caller, compute
from climate.compute import Compute
from climate.service.journal import audit_trail


def audited() -> Compute:
    """Return the cloud that records each change in the audit trail as the caller's, in the same transaction."""
    author, cloud = caller(), compute()
    return replace(cloud, tell_change=lambda conn, change: audit_trail.record(conn, author, cloud.now(conn), change))
