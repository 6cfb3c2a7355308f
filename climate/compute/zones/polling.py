"""Polls of child zones: one poller asks each child once per period, all in parallel."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.store.zones import child_zones
from climate.compute.zones import loops, placed_servers, registry, routing
from climate.compute.zones.client_interface import ID_HEADER, ChildAnswer, ChildError, ChildLoop, ChildRequest
from climate.compute.zones.models import ChildZone
from climate.database.connections import reading

INFO = ChildRequest("GET", "/zones/info")

MOST_CAPABILITIES = 256
LONGEST_NAME = 255
LONGEST_VALUE = 1024

REFUSALS = {
    403: "lets this account not see its zone: it must be an administrator's",
    404: "has no zones API: CLIMATE_ALLOW_ADMIN_API is false there, or api_url leads elsewhere",
    429: "gets too many requests of this account",
}

Tell = Callable[[Connection, datetime, ChildZone], None]
"""Function called in the transaction in which a child becomes inactive or active again."""

Outcome = ChildAnswer | ChildError

log = structlog.get_logger(__name__)


def poll(compute: Compute, tell: Tell = lambda conn, now, zone: None) -> int:
    """Send /zones/info to every due child, and record the outcomes; return the number of asked children.

    No transaction is open while children are asked.
    """
    if compute.zones.client is None:
        return 0
    with compute.engine.begin() as conn:
        due = child_zones.claim_polls(conn, compute.now(conn), compute.zones.poll_seconds)
    if not due:
        return 0
    outcomes = [
        _checked(compute, zone, outcome) for zone, outcome in zip(due, _poll_children(compute, due), strict=True)
    ]
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        for before, outcome in zip(due, outcomes, strict=True):
            after = _record(compute, conn, now, (before, outcome))
            if after is not None and after.is_active != before.is_active:
                tell(conn, now, after)
    answered = [zone for zone, outcome in zip(due, outcomes, strict=True) if isinstance(outcome, ChildAnswer)]
    _probe_for_loops(compute, answered)
    placed_servers.forget_gone(compute, [registry.opened(compute, zone) for zone in answered])
    return len(due)


def has_children(compute: Compute) -> bool:
    """Return whether there are children to poll."""
    with reading(compute.engine) as conn:
        return child_zones.are_any(conn)


def _poll_children(compute: Compute, zones: Sequence[ChildZone]) -> list[Outcome]:
    """Return the outcomes in the order of the children; one whose password cannot be decrypted is skipped."""
    outcomes: dict[int, Outcome] = {}
    asked = []
    for zone in zones:
        try:
            asked.append((registry.opened(compute, zone), INFO))
        except ComputeError as error:
            outcomes[zone.id] = ChildError(str(error))
    assert compute.zones.client is not None
    answers = compute.zones.client.send_all(asked)
    outcomes |= {zone.id: answer for (zone, _), answer in zip(asked, answers, strict=True)}
    return [outcomes[zone.id] for zone in zones]


def _checked(compute: Compute, zone: ChildZone, outcome: Outcome) -> Outcome:
    """Return the outcome, or an error if it is not the answer of a child zone."""
    label = f"zone {zone.id} ({zone.api_url})"
    if isinstance(outcome, ChildError):
        return outcome
    if outcome.status != 200:
        return ChildError(f"{label} {REFUSALS.get(outcome.status, f'answers with HTTP {outcome.status}')}")
    if outcome.headers.get(ID_HEADER.lower()) == compute.zones.own_id():
        return ChildLoop(f"{label} is this zone itself")
    if reported(outcome.body) is None:
        return ChildError(f"{label} answers /zones/info with an invalid body")
    return outcome


def reported(body: object) -> Mapping[str, str] | None:
    """Return the name and the capabilities in a child's answer; None if they are not usable."""
    zone = body.get("zone") if isinstance(body, dict) else None
    if not isinstance(zone, dict) or len(zone) > MOST_CAPABILITIES:
        return None
    if not all(_is_text(key, LONGEST_NAME) and _is_text(value, LONGEST_VALUE) for key, value in zone.items()):
        return None
    if len(zone.get("name", "")) > LONGEST_NAME:
        return None
    others = ", ".join(f"{key}={value}" for key, value in zone.items() if key != "name")
    return {"name": zone.get("name") or "n/a", "capabilities": others}


def _is_text(value: object, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def _record(compute: Compute, conn: Connection, now: datetime, polled: tuple[ChildZone, Outcome]) -> ChildZone | None:
    zone, outcome = polled
    if isinstance(outcome, ChildError):
        return _record_failure(compute, conn, now, polled)
    result = {**(reported(outcome.body) or {}), "last_seen": now}
    deployment = outcome.headers.get(ID_HEADER.lower(), "")[:LONGEST_NAME]
    after = child_zones.record_success(conn, zone, {**result, "deployment_id": deployment or None})
    if after is not None and not zone.is_active:
        log.info("child zone active again", zone=zone.id, api_url=zone.api_url)
    return after


def _record_failure(
    compute: Compute, conn: Connection, now: datetime, polled: tuple[ChildZone, Outcome]
) -> ChildZone | None:
    zone, outcome = polled
    result: dict[str, object] = {"last_error": str(outcome), "last_error_at": now}
    if isinstance(outcome, routing.COSTLY):
        result["skipped_until"] = now + timedelta(seconds=compute.zones.poll_seconds)
    after = child_zones.record_failure(conn, zone, result, compute.zones.failures_to_offline)
    if after is None:
        return None
    log.warning("child zone not polled", zone=zone.id, reason=str(outcome), attempts=after.attempts)
    if zone.is_active and not after.is_active:
        log.error(f"No answer from zone {zone.api_url} after {after.attempts} attempts. Marking inactive.")
    return after


def _probe_for_loops(compute: Compute, answered: Sequence[ChildZone]) -> None:
    """Probe for loops below children that answered for the first time, and below those that led back to this zone."""
    suspects = [zone for zone in answered if zone.last_seen is None or zone.loop_at is not None]
    loops.probe(compute, [registry.opened(compute, zone) for zone in suspects])
