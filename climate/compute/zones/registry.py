"""Registry of child zones: create, update and delete, without calls to them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from climate.compute import audit_trail
from climate.compute.audit_trail import ZONE, Change
from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.store.nodes import service_capabilities
from climate.compute.store.zones import builds, child_zones, notify_pollers
from climate.compute.zones import capabilities
from climate.compute.zones.models import ChildZone
from climate.database.connections import reading

SECRETS = ("password",)

CONTACT = frozenset({"api_url", "username", "password"})
"""Fields whose change restarts the polls."""

UNPOLLED: Mapping[str, object] = {
    "is_active": True,
    "attempts": 0,
    "last_error": None,
    "last_error_at": None,
    "polled_at": None,
    "skipped_until": None,
    "deployment_id": None,
    "loop_at": None,
}


def listed(compute: Compute) -> list[ChildZone]:
    """Return all children, oldest first, with encrypted passwords."""
    with reading(compute.engine) as conn:
        return child_zones.listed(conn)


def get(compute: Compute, zone_id: int) -> ChildZone:
    """Return one child with its password encrypted. Raise NotFound."""
    with reading(compute.engine) as conn:
        return _known(child_zones.get(conn, zone_id), zone_id)


def add(compute: Compute, values: Mapping[str, Any]) -> ChildZone:
    """Register a child by api_url, username, password and weights. Raise Conflict if its URL is registered."""
    sealed = {**values, "password": compute.zones.seal(values["password"])}
    with compute.engine.begin() as conn:
        made = child_zones.add(conn, sealed)
        notify_pollers.notify(conn, notify_pollers.CHILDREN)
        if made is not None:
            _announce(compute, conn, None, made, audit_trail.secrets(values, SECRETS, audit_trail.SET))
    if made is None:
        raise _registered(values["api_url"])
    return made


def change(compute: Compute, zone_id: int, values: Mapping[str, Any]) -> ChildZone:
    """Update fields of a child. Raise NotFound, or Conflict if its new URL is another child's."""
    given = dict(values)
    if "password" in given:
        given["password"] = compute.zones.seal(given["password"])
    if CONTACT & set(given):
        given |= UNPOLLED
    with compute.engine.begin() as conn:
        before = _known(child_zones.get(conn, zone_id, lock=True), zone_id)
        moved = given.get("api_url", before.api_url) != before.api_url
        if moved and child_zones.has_url(conn, given["api_url"], zone_id):
            raise _registered(given["api_url"])
        if moved:
            given |= {"name": None, "capabilities": None, "last_seen": None}
        if given:
            child_zones.change(conn, zone_id, given)
        after = _known(child_zones.get(conn, zone_id), zone_id)
        _announce(compute, conn, before, after, audit_trail.secrets(values, SECRETS, audit_trail.CHANGED))
        return after


def remove(compute: Compute, zone_id: int, *, force: bool = False) -> None:
    """Delete a child, and the owners of servers placed there. Raise NotFound. The child itself is unchanged.

    Raise Conflict while orders to it have no answer. `force`: give these servers up; they stay where the child built
    them.
    """
    with compute.engine.begin() as conn:
        before = _known(child_zones.get(conn, zone_id, lock=True), zone_id)
        count = 0 if force else builds.count_asked(conn, zone_id)
        if count:
            some = "1 build waits" if count == 1 else f"{count} builds wait"
            raise Conflict(
                f"Zone {zone_id} cannot be removed: {some} for its answer about servers. Wait until they are done, "
                "or pass force=true to give these servers up"
            )
        child_zones.drop(conn, zone_id)
        _announce(compute, conn, before, None, {})


def _announce(
    compute: Compute, conn: Connection, before: ChildZone | None, after: ChildZone | None, secrets: Mapping[str, str]
) -> None:
    zone = after or before
    if zone is not None:
        was = None if before is None else _fields(before)
        now = None if after is None else {**_fields(after), **secrets}
        compute.tell_change(conn, Change(ZONE, str(zone.id), zone.api_url, was, now))


def _fields(of: ChildZone) -> dict[str, object]:
    return {name: getattr(of, name) for name in ("api_url", "username", "weight_offset", "weight_scale")}


def opened(compute: Compute, zone: ChildZone) -> ChildZone:
    """Return the child with its password decrypted. Raise ComputeError if the key is missing."""
    return replace(zone, password=compute.zones.unseal(zone.password))


def info(compute: Compute) -> dict[str, str]:
    """Return this zone's info for its parent: name, static capabilities, and (min, max) of reported numbers."""
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        reports = service_capabilities.listed(conn)
    numbers = capabilities.aggregate(reports, now, compute.zones.report_seconds)
    reported = {key: capabilities.written(bounds) for key, bounds in sorted(numbers.items())}
    return {"name": compute.zones.name, **compute.zones.capabilities, **reported}


def _known(zone: ChildZone | None, zone_id: int) -> ChildZone:
    if zone is None:
        raise _unknown(zone_id)
    return zone


def _unknown(zone_id: int) -> NotFound:
    return NotFound(f"Zone {zone_id} could not be found.")


def _registered(api_url: str) -> Conflict:
    return Conflict(f"A child zone with api_url {api_url} is registered already")
