"""Chain of zones that forwarded a request: read from its headers, and checked for loops."""

import math
from dataclasses import replace

from flask import g, request

from api.request_context import caller, compute
from climate.compute.errors import Forbidden, ZoneLoop
from climate.compute.zones import loops
from climate.compute.zones.client_interface import CHAIN_HEADER, ROLE_HEADER, SECONDS_HEADER
from climate.compute.zones.models import FROM_USER, MOST_HOPS, ZoneChain
from climate.domain.errors import InvalidInput
from climate.domain.policy import ADMIN, MEMBER, READER

LONGEST = 64
"""Longest id in a chain in characters."""


def check() -> None:
    """Read the chain of the request, and apply the role that the user has in the parent zone.

    Raises ZoneLoop if this zone is in the chain, or if the chain is too long.  Only
    administrators may forward requests; headers of others are ignored.
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
    """Return the chain of the request; empty if no zone has forwarded it."""
    result: ZoneChain = g.get("zone_chain", FROM_USER)
    return result


def is_forwarded() -> bool:
    """Return whether a parent zone has sent the request."""
    return chain() != FROM_USER


def refuse_forwarded() -> None:
    """Refuse requests of parent zones, which must not see the zones below this one."""
    if is_forwarded():
        raise Forbidden("Child zones of a zone are not visible to its parents")


def sees_hosts() -> bool:
    """Return whether the caller may see names of hosts, which no parent zone sees."""
    return caller().is_admin and not is_forwarded()


def role() -> str:
    """Return the highest role of the caller, which limits the role in a child zone."""
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
