"""The chain of zones that a request came through: read from its headers, checked for loops."""

import math
from dataclasses import replace

from flask import g, request

from api.request_context import caller, compute
from climate.compute.errors import Forbidden, ZoneLoop
from climate.compute.zones import loops
from climate.compute.zones.client import CHAIN_HEADER, ROLE_HEADER, SECONDS_HEADER
from climate.compute.zones.models import FROM_USER, MOST_HOPS, ZoneChain
from climate.domain.errors import InvalidInput
from climate.domain.policy import ADMIN, MEMBER, READER

LONGEST = 64
"""Characters of an id in a chain."""


def check() -> None:
    """Read the chain of the request at hand, and let it act with the role of the user in the parent zone.

    Raises ZoneLoop when this zone is in the chain, or when it is too long.  Only
    administrators forward requests: from others, the headers mean nothing.
    """
    if CHAIN_HEADER not in request.headers or "caller" not in g or not caller().is_admin:
        return
    ids = tuple(request.headers[CHAIN_HEADER].split(",", MOST_HOPS + 1))
    if any(not word or len(word) > LONGEST for word in ids[: MOST_HOPS + 1]):
        raise InvalidInput(f"{CHAIN_HEADER} must be ids of zones, by commas")
    if compute().zones.own_id() in ids:
        loops.note_return(compute(), ids)
        raise ZoneLoop
    if len(ids) > MOST_HOPS:
        raise ZoneLoop(f"The request came through more than {MOST_HOPS} zones")
    g.zone_chain = ZoneChain(ids, _seconds())
    g.caller = replace(caller(), roles=frozenset({_role()}))


def chain() -> ZoneChain:
    """The chain of the request at hand; that of a request that no zone has forwarded is empty."""
    found: ZoneChain = g.get("zone_chain", FROM_USER)
    return found


def is_forwarded() -> bool:
    """Return whether a parent zone has sent the request at hand."""
    return chain() != FROM_USER


def refuse_forwarded() -> None:
    """Refuse requests of parent zones: the structure below this zone is its own business."""
    if is_forwarded():
        raise Forbidden("The children of a zone are not told to its parents")


def sees_hosts() -> bool:
    """Return whether the caller may be told names of hosts, which never leave the zone."""
    return caller().is_admin and not is_forwarded()


def role() -> str:
    """The highest role of the caller, for a child zone to grant no more."""
    return next((role for role in (ADMIN, MEMBER) if caller().has(role)), READER)


def _role() -> str:
    text = request.headers.get(ROLE_HEADER, ADMIN)
    if text not in (ADMIN, MEMBER, READER):
        raise InvalidInput(f"{ROLE_HEADER} must be {ADMIN}, {MEMBER} or {READER}, not {text[:40]!r}")
    return text


def _seconds() -> float | None:
    text = request.headers.get(SECONDS_HEADER, "")
    try:
        seconds = float(text) if text else math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise InvalidInput(f"{SECONDS_HEADER} must be a number above 0, not {text[:40]!r}")
    return None if math.isinf(seconds) else seconds
