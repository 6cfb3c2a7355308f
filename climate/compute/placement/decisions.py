"""Decisions of the scheduler, kept for as long as the servers that they placed.

A decision about all servers of a request is stored once. A body holds `kind` (below), `trail` (see
climate.compute.scheduler.decisions.record), `lost`, and for a RETRY `after`. `lost` is a list of reasons for each
choice that other requests overtook. `after` is the node, its service host and the reason of the failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.store.servers import decisions as rows
from climate.database.connections import reading

PLACED, REFUSED, RETRY, ZONES = "placed", "refused", "retry", "zones"
"""Kinds of decisions.

Nodes were found; none were found; another node was chosen after a failure, with an `error` if there was none; zones
were compared, with their answers in the trail (see climate.compute.zones.builds.selection.ZoneReport).
"""

WINDOW = 2000
"""Rows that one call of `forget` examines."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One run of the scheduler, oldest first if there are several."""

    build_id: str
    server_id: str | None
    """The server; None: the decision is about all servers of the request."""
    made_at: datetime
    kind: str
    trail: Mapping[str, object]
    lost: Sequence[Sequence[str]] = ()
    after: Mapping[str, object] | None = None
    error: str | None = None


def of(compute: Compute, server_id: str) -> list[Decision]:
    """Return the decisions about a server, oldest first; empty if the server does not exist."""
    with reading(compute.engine) as conn:
        return [_decision(row) for row in rows.of(conn, server_id)]


def store(conn: Connection, decision: Decision) -> None:
    """Store a decision, in the transaction that carries it out."""
    body: dict[str, object] = {"kind": decision.kind, "trail": decision.trail}
    body |= {"lost": [list(reasons) for reasons in decision.lost]} if decision.lost else {}
    body |= {"after": decision.after} if decision.after else {}
    body |= {"error": decision.error} if decision.error else {}
    rows.add(conn, decision.build_id, decision.server_id, decision.made_at, body)


def forget(compute: Compute) -> int:
    """Delete some decisions about deleted servers; return their number. Called periodically."""
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
