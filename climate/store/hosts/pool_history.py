"""Pools of hosts at a past time, read from their journals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, text

from climate.store.schema import Time

# One step back in the journal of each host for each of its moves since then.
_THEN = text("""
    SELECT h.id, h.hypervisor_hostname AS name, j.body ->> 'pool' AS pool, j.recorded_at AS since,
        coalesce(j.body ->> 'reason', '') AS reason
    FROM hosts h CROSS JOIN LATERAL (
        SELECT kind, body, recorded_at FROM journal
        WHERE stream = h.stream AND kind IN ('HostEnrolled', 'HostMoved', 'HostRemoved') AND recorded_at <= :at
        ORDER BY version DESC LIMIT 1) j
    WHERE j.kind <> 'HostRemoved' ORDER BY pool, name, id
""").bindparams(bindparam("at", type_=Time))


@dataclass(frozen=True, slots=True)
class PastPlace:
    """The pool in which a host was, since when, and the reason of its move."""

    host: int
    name: str
    pool: str
    since: datetime
    reason: str


def then(conn: Connection, at: datetime) -> Sequence[PastPlace]:
    """Return the pools of all hosts that were registered at a time, in one statement."""
    return [PastPlace(*row) for row in conn.execute(_THEN, {"at": at})]
