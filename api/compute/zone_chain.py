"""The chain of zones that a request came through: read from its headers, checked for loops."""

import math

from flask import request

from api.current import caller, compute
from climate.compute.errors import Forbidden, ZoneLoop
from climate.compute.zones.client import CHAIN_HEADER, SECONDS_HEADER
from climate.compute.zones.models import FROM_USER, MOST_HOPS, ZoneChain
from climate.domain.errors import InvalidInput

LONGEST = 64
"""Characters of an id in a chain."""


def chain() -> ZoneChain:
    """The chain of the request at hand; that of a request that no zone has forwarded is empty.

    Raises ZoneLoop when this zone is in it, or when it is too long.  Only
    administrators forward requests: from others, the headers mean nothing.
    """
    text = request.headers.get(CHAIN_HEADER, "")
    if not text or not caller().is_admin:
        return FROM_USER
    ids = tuple(text.split(",", MOST_HOPS + 1))
    if any(not word or len(word) > LONGEST for word in ids[: MOST_HOPS + 1]):
        raise InvalidInput(f"{CHAIN_HEADER} must be ids of zones, by commas")
    if compute().zones.own_id() in ids:
        raise ZoneLoop
    if len(ids) > MOST_HOPS:
        raise ZoneLoop(f"The request came through more than {MOST_HOPS} zones")
    return ZoneChain(ids, _seconds())


def check() -> None:
    """Refuse a request that has come back to this zone."""
    if CHAIN_HEADER in request.headers:
        chain()


def refuse_forwarded() -> None:
    """Refuse requests of parent zones: the structure below this zone is its own business."""
    if chain() != FROM_USER:
        raise Forbidden("The children of a zone are not told to its parents")


def _seconds() -> float | None:
    text = request.headers.get(SECONDS_HEADER, "")
    try:
        seconds = float(text) if text else math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise InvalidInput(f"{SECONDS_HEADER} must be a number above 0, not {text[:40]!r}")
    return None if math.isinf(seconds) else seconds
