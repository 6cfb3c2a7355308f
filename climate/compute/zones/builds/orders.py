"""Orders to child zones: the request to build a server there, and the outcome of the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.compute.models.request import BootRequest
from climate.compute.models.server import MANUAL, is_id
from climate.compute.zones.client_interface import (
    ChildAnswer,
    ChildError,
    ChildLoop,
    ChildRefused,
    ChildRequest,
    ChildUnreachable,
)
from climate.compute.zones.models import FROM_USER, ZoneChain

HINTS = "OS-SCH-HNT:scheduler_hints"
LONGEST_REASON = 300

NEVER_SENT = (ChildLoop, ChildRefused, ChildUnreachable)
"""Errors that prove that the child did not receive the request."""


@dataclass(frozen=True, slots=True)
class ServerOrder:
    """Order of one server, with its offer."""

    name: str
    """Name of the server."""
    blob: str = field(repr=False)
    reservation_id: str
    build_id: str
    """Build id, unique over all zones: with the number it identifies a repeated order. Empty: the offer does."""
    launch_index: int
    project_id: str
    """Project of the owner, in the zone that received the request."""
    user_id: str


@dataclass(frozen=True, slots=True)
class ServerBuilt:
    """Outcome: the child has built the server."""

    server_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Outcome: the child has not built the server, and will not."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Outcome: the child may have built the server; only a repeated order shows it."""

    reason: str


Outcome = ServerBuilt | Refused | Unknown


def request_for(
    order: ServerOrder, request: BootRequest, image: str | None, chain: ZoneChain = FROM_USER
) -> ChildRequest:
    """Return the request for one server: the user's request with the offer; `image` is the name of its image."""
    server: dict[str, object] = {
        "name": order.name,
        "flavorRef": request.flavor.name,
        "imageRef": image,
        "networks": "none" if request.networks == () else "auto",
        "metadata": dict(request.metadata),
        "availability_zone": request.zone,
        "key_name": request.key_name,
        "user_data": request.user_data,
        "config_drive": True if request.config_drive else None,
        "OS-DCF:diskConfig": None if request.disk_config == MANUAL else request.disk_config,
        "description": request.description,
        "tags": list(request.tags) or None,
        "accessIPv4": request.access[0],
        "accessIPv6": request.access[1],
        "blob": order.blob,
        "reservation_id": order.reservation_id,
        "zone_build": {
            "id": order.build_id,
            "launch_index": order.launch_index,
            "project_id": order.project_id,
            "user_id": order.user_id,
            **({"public_key": request.public_key} if request.public_key else {}),
        },
    }
    body = {"server": {key: value for key, value in server.items() if value is not None}}
    return ChildRequest("POST", "/servers", {**body, HINTS: dict(request.hints)}, chain=chain)


def not_sent(reason: str, *, repeated: bool) -> Outcome:
    """Return the outcome of an unsent order; the child may have built the server for an earlier attempt."""
    return Unknown(reason) if repeated else Refused(reason)


def outcome(answer: ChildAnswer | ChildError, *, repeated: bool) -> Outcome:
    """Return the outcome of an order by the child's answer; `repeated`: the order may have been sent before."""
    if isinstance(answer, NEVER_SENT):
        return not_sent(str(answer), repeated=repeated)
    if isinstance(answer, ChildError):
        return Unknown(str(answer))
    if answer.is_good:
        server = answer.body.get("server") if isinstance(answer.body, dict) else None
        server_id = server.get("id") if isinstance(server, dict) else None
        return (
            ServerBuilt(server_id) if isinstance(server_id, str) and is_id(server_id) else Unknown("it names no server")
        )
    if 400 <= answer.status < 500 and answer.status != 429:
        return Refused(message(answer))
    return Unknown(message(answer))


def message(answer: ChildAnswer) -> str:
    """Return the reason of a refusal, as one line of limited length.

    The account's permissions and quota in the child are not shown to users of this zone.
    """
    if answer.status in (401, 403):
        return f"HTTP {answer.status}: the account of this zone lacks the permission there"
    body: Mapping[str, object] = answer.body if isinstance(answer.body, dict) else {}
    inner = next((value for value in body.values() if isinstance(value, dict)), {})
    text = inner.get("message")
    if not isinstance(text, str):
        return f"HTTP {answer.status}"
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return f"HTTP {answer.status}: {line[:LONGEST_REASON]}"
