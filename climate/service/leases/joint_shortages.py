"""Refusals for reservations that cannot be had together: the text of the answer, and the later start that would fit."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from climate.domain.errors import ClimateError, NotEnoughAddresses, NotEnoughHosts, NotEnoughStorage, TooComplex
from climate.domain.hosts import matching
from climate.domain.hosts.matching import Unmatched
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.period import Period
from climate.plugin import ADDRESSES, INVENTORIES
from climate.service.leases.joint_allocation import Offered, Unmatchable, merged, offer_of
from climate.store.allocation.candidates import Candidates

MOST_STARTS = 40
"""Maximum number of later starts that are tried."""

NAMED = {ADDRESSES: "floating IPs", INVENTORIES: "storage"}
ERRORS: dict[str, type[ClimateError]] = {ADDRESSES: NotEnoughAddresses, INVENTORIES: NotEnoughStorage}


def explained(conn: Connection, refusal: Unmatchable) -> ClimateError:
    """Return the refusal: what each reservation wants, what is free for each and together, when all would fit."""
    offered = refusal.offered
    kind = offered[0].offer.kind
    free = {number for one in offered for number in one.candidates.demand.candidates}
    numbers = ", ".join(str(one.place + 1) for one in offered[:-1])
    each = "; ".join(f"reservation {one.place + 1}: {_demand_text(one.candidates)}" for one in offered)
    lacking = "" if refusal.short is None else f", {refusal.short} too few for reservation {offered[-1].place + 1}"
    message = (
        f"Not enough {NAMED.get(kind, 'hosts')} available for reservations {numbers} and {offered[-1].place + 1} "
        f"together: {each}; together {len(free)} free{lacking}"
    )
    return ERRORS.get(kind, NotEnoughHosts)(f"{message}{_later(conn, refusal)}")


def _demand_text(candidates: Candidates) -> str:
    demand = candidates.demand
    if isinstance(demand, Whole):
        return f"{demand.least} wanted, {len(demand.candidates)} free for it"
    alone = sum(demand.fit(host, candidates.rooms.get(host, {})) for host in demand.candidates)
    where = {None: "", True: " on one host", False: ", each on another"}[demand.affinity]
    return f"{demand.amount} wanted{where}, {len(demand.candidates)} with room for it, {alone} of these in all"


def _later(conn: Connection, refusal: Unmatchable) -> str:
    if any(one.ask.active for one in refusal.everything):
        return ""  # what has begun cannot begin later
    start = _fits_from(conn, refusal)
    return f"; it would fit from {start:%Y-%m-%d %H:%M:%S} UTC" if start else "; no later start is known to fit"


def _fits_from(conn: Connection, refusal: Unmatchable) -> datetime | None:
    """Return the first known start at which all fit. Only ends of other allocations are tried: more is free then."""
    begin = refusal.offered[0].ask.period.start
    ends = {end for one in refusal.everything for end in one.offer.ends(conn) if end > begin}
    return next((start for start in sorted(ends)[:MOST_STARTS] if _fits_at(conn, refusal.everything, start)), None)


def _fits_at(conn: Connection, offered: Sequence[Offered], start: datetime) -> bool:
    later = [_moved(conn, one, start) for one in offered]
    try:
        return not isinstance(matching.match([one.candidates.demand for one in later], merged(later)), Unmatched)
    except TooComplex:
        return False


def _moved(conn: Connection, one: Offered, start: datetime) -> Offered:
    period = Period(start, start + (one.ask.period.end - one.ask.period.start))
    ask = replace(one.ask, period=period)
    offer = offer_of(conn, one.plugin, ask)
    return one if offer is None else replace(one, ask=ask, offer=offer, candidates=offer.read(conn))
