"""Build requests of a parent zone: the accepted offer, and the build that the server belongs to."""

import re
from collections.abc import Mapping
from typing import Any

from api.compute import validation
from api.request_context import caller, deployment
from climate.compute.projects.quota_check import MOST_AT_ONCE
from climate.compute.servers.create import new_build_id
from climate.compute.zones.builds.orders import Order
from climate.domain.errors import Forbidden, InvalidInput

BLOBS = ("blob", "zone_blob")
KEYS = frozenset({*BLOBS, "reservation_id", "zone_build", "num_instances"})
BUILD_KEYS = frozenset({"id", "launch_index", "project_id", "user_id"})

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def is_on_offer(server: Mapping[str, Any]) -> bool:
    """Return whether a server is requested on an offer of this zone; Forbidden for all but administrators."""
    if all(server.get(key) is None for key in BLOBS):
        return False
    if not caller().is_admin:
        raise Forbidden("Only administrators may use an offer of this zone.")
    return True


def check(server: Mapping[str, Any], count: int, *, on_offer: bool, of_build: bool) -> None:
    """Raise InvalidInput for keys of zones in a request where they have no meaning."""
    if "num_instances" in server:
        raise InvalidInput("num_instances is only for POST /zones/boot; give min_count and max_count")
    if on_offer and count > 1:
        raise InvalidInput("max_count must be 1 with blob, which is an offer for one server")
    if "zone_build" in server and not on_offer:
        raise InvalidInput("zone_build needs the blob of an offer")
    if "reservation_id" in server and not (on_offer or of_build):
        raise InvalidInput("reservation_id is only for POST /zones/boot and for servers on an offer")


def read(server: Mapping[str, Any], name: str) -> Order:
    """Return the build request of a parent zone; InvalidInput names what is wrong with it."""
    blob = next(server[key] for key in BLOBS if server.get(key) is not None)
    given = server.get("zone_build")
    build = {} if given is None else validation.details("zone_build", given)
    if unknown := sorted(set(build) - BUILD_KEYS):
        raise InvalidInput(f"zone_build: only {', '.join(sorted(BUILD_KEYS))} can be given, not {unknown[0][:40]!r}")
    return Order(
        name,
        blob,
        reservation_id(server) or new_build_id(deployment().compute),
        _id(build.get("id"), "zone_build.id") or "",
        validation.count(build.get("launch_index", 0), "zone_build.launch_index", 0, MOST_AT_ONCE - 1),
        validation.name(build.get("project_id", caller().project_id), "zone_build.project_id"),
        validation.name(build.get("user_id", caller().user_id), "zone_build.user_id"),
    )


def reservation_id(server: Mapping[str, Any]) -> str | None:
    """Return the reservation id that a client chose for a build; None if it chose none."""
    return _id(server.get("reservation_id"), "reservation_id")


def _id(value: Any, field: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput(f"{field} must be a text of 1 to 64 letters, digits, '.', '_' and '-'")
    return value
