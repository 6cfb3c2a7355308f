"""Why servers are where they are: every decision of the scheduler, kept for as long as its servers.

A decision that concerns all servers of a request is kept once.  A body holds
`kind` (below), `trail` (see climate.compute.scheduler.decisions.record), `lost`: what was
chosen before and taken by others in the same moment, one list of reasons for
each such choice, and, for a RETRY, `after`: the node, its service host and the
reason for which making the server had failed there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.store.servers import decisions as rows
from climate.connections import reading

PLACED, REFUSED, RETRY, ZONES = "placed", "refused", "retry", "zones"
"""Nodes were found; none were; another was looked for after one had failed, and `error` says why there is none; zones
were compared, and `trail` has their answers below `zones` (see climate.compute.zones.builds.selection.ZoneReport)."""

WINDOW = 2000
"""Rows that one call of `forget` looks at."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One run of the scheduler, oldest first where there are several."""

    build_id: str
    server_id: str | None
    """None: it was for all servers of the request."""
    made_at: datetime
    kind: str
    trail: Mapping[str, Any]
    lost: Sequence[Sequence[str]] = ()
    after: Mapping[str, Any] | None = None
    error: str | None = None


def of(compute: Compute, server_id: str) -> list[Decision]:
    """What was decided about a server, oldest first; empty when there is no such server."""
    with reading(compute.engine) as conn:
        return [_decision(row) for row in rows.of(conn, server_id)]


def keep(conn: Connection, decision: Decision) -> None:
    """Write a decision down, in the transaction that carries it out."""
    body: dict[str, Any] = {"kind": decision.kind, "trail": decision.trail}
    body |= {"lost": [list(reasons) for reasons in decision.lost]} if decision.lost else {}
    body |= {"after": decision.after} if decision.after else {}
    body |= {"error": decision.error} if decision.error else {}
    rows.add(conn, decision.build_id, decision.server_id, decision.made_at, body)


def forget(compute: Compute) -> int:
    """Drop some of what is about no server any more; how many went.  To be called now and then."""
    with compute.engine.begin() as conn:
        return rows.forget(conn, WINDOW)


def _decision(row: Mapping[str, Any]) -> Decision:
    body = row["body"]
    return Decision(
        row["build_id"],
        row["server_id"],
        row["made_at"],
        body["kind"],
        body["trail"],
        body.get("lost", ()),
        body.get("after"),
        body.get("error"),
    )
