"""Polls of child zones by the poller, with notifications to administrators when one is lost or returns."""

from datetime import datetime

from sqlalchemy import Connection

from climate.bootstrap import Deployment
from climate.compute.zones import polling
from climate.compute.zones.models import ChildZone
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Notice

INACTIVE, ACTIVE = "zone.inactive", "zone.active"

TICKS = 6
"""Number of checks per period for children that are due."""


def interval(poll_seconds: float) -> float:
    """Return the seconds between two checks: short enough that a new child is polled within one period."""
    return poll_seconds / TICKS


def poll(deployment: Deployment) -> int:
    """Poll the children that are due; return how many were asked."""
    return polling.poll(deployment.compute, notify)


def notify(conn: Connection, now: datetime, zone: ChildZone) -> None:
    """Write a notification to administrators that a child is inactive, or active again."""
    delivery.notify(conn, now, _notice(zone))


def _notice(zone: ChildZone) -> Notice:
    label = f"Zone {zone.id} ({zone.name or 'n/a'}, {zone.api_url})"
    body = {"zone_id": zone.id, "name": zone.name, "api_url": zone.api_url, "attempts": zone.attempts}
    if zone.is_active:
        return Notice(ACTIVE, f"{label} answers again.", body=body)
    reason = f"{label} did not answer {zone.attempts} polls: {zone.last_error}"
    return Notice(INACTIVE, reason, body={**body, "error": zone.last_error})
