"""Boot servers on the parts of a lease that lie in child zones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from climate.cloud import CloudError
from climate.cloud.zone_children import BROKEN
from climate.cloud.zones import ZoneAnswer, ZoneRequest
from climate.context import Climate
from climate.domain.errors import Conflict, Unavailable
from climate.domain.lease import Part
from climate.domain.policy import Caller
from climate.service import lease_parts

KEY = "climate_zone_boot"
"""Metadata of a server, by which it is found again when the child's answer was lost."""

HINTS = ("OS-SCH-HNT:scheduler_hints", "os:scheduler_hints", "scheduler_hints")


@dataclass(frozen=True, slots=True)
class Names:
    """Names by which children know the flavor and the image of a server."""

    flavor: str
    image: str | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A server in a child zone."""

    id: str
    zone_id: int


def boot(climate: Climate, caller: Caller, parts: Sequence[Part], body: Mapping[str, Any], names: Names) -> Placed:
    """Boot one server on the first part that has room for it.  `body` is the request as the user sent it.

    Conflict says what each child refused.  Unavailable where a child does not
    answer: it may have made the server, so no other is asked.
    """
    refusals = []
    for part in parts:
        outcome = _boot(climate, caller, part, body, names)
        if isinstance(outcome, Placed):
            return outcome
        refusals.append(f"zone {part.zone}: {outcome}")
    raise Conflict(f"No zone of the lease can boot the server: {'; '.join(refusals) or 'none has a confirmed part'}")


def _boot(climate: Climate, caller: Caller, part: Part, body: Mapping[str, Any], names: Names) -> Placed | str:
    """The server, or why the child does not have it."""
    flavor = _id_of(climate, caller, ZoneRequest(part.zone_id, "GET", "/flavors", service="compute"), names.flavor)
    if flavor is None:
        return f"it has no flavor {names.flavor}"
    image = None
    if names.image is not None:
        listing = ZoneRequest(part.zone_id, "GET", "/images", query={"name": names.image}, service="image")
        image = _id_of(climate, caller, listing, names.image)
        if image is None:
            return f"it has no image {names.image}, or more than one"
    key = str(uuid4())
    sent = _translated(body, part, {"flavorRef": flavor, "imageRef": image}, key)
    request = ZoneRequest(part.zone_id, "POST", "/servers", sent, service="compute", role=lease_parts.role(caller))
    (outcome,) = climate.zones.ask_all([request])
    if isinstance(outcome, CloudError) or outcome.status >= BROKEN:
        return _found_again(climate, part, key)
    server_id = _inner(outcome, "server").get("id")
    if outcome.is_good and isinstance(server_id, str):
        return Placed(server_id, part.zone_id)
    return f"HTTP {outcome.status}"


def _translated(body: Mapping[str, Any], part: Part, ids: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The request as the child understands it: its own ids, and the reservation that is its part."""
    server = dict(body["server"])
    hints: dict[str, Any] = {}
    for name in HINTS:
        hints |= server.pop(name, None) or {}
        hints |= body.get(name) or {}
    server |= {name: value for name, value in ids.items() if value is not None}
    server["metadata"] = {**(server.get("metadata") or {}), KEY: key}
    return {"server": server, HINTS[0]: {**hints, "reservation": str(part.reservation_id)}}


def _id_of(climate: Climate, caller: Caller, listing: ZoneRequest, name: str) -> str | None:
    """The id of the one thing in a list that has that name."""
    (outcome,) = climate.zones.ask_all([listing])
    if isinstance(outcome, CloudError) or not isinstance(outcome.body, dict):
        return None
    things = outcome.body.get(listing.path.removeprefix("/"))
    found = [thing.get("id") for thing in things or () if isinstance(thing, dict) and thing.get("name") == name]
    return str(found[0]) if len(found) == 1 else None


def _found_again(climate: Climate, part: Part, key: str) -> Placed:
    """The server of a request whose answer was lost."""
    listing = ZoneRequest(part.zone_id, "GET", "/servers/detail", service="compute")
    (outcome,) = climate.zones.ask_all([listing])
    servers = outcome.body.get("servers") if isinstance(outcome, ZoneAnswer) and isinstance(outcome.body, dict) else ()
    for server in servers or ():
        if isinstance(server, dict) and (server.get("metadata") or {}).get(KEY) == key:
            return Placed(str(server["id"]), part.zone_id)
    raise Unavailable(f"Zone {part.zone} does not answer: whether the server is made there is not known")


def _inner(outcome: ZoneAnswer, name: str) -> Mapping[str, Any]:
    inner = outcome.body.get(name) if isinstance(outcome.body, dict) else None
    return inner if isinstance(inner, dict) else {}
