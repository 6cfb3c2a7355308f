"""Distribution of a new lease over this deployment and its child zones and cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import structlog

from climate.cloud import CloudError
from climate.cloud.children import CELL, ZONE, Asker, Child, Offer, PartOrder, PartRequest
from climate.context import Climate
from climate.domain.errors import ClimateError, InvalidInput, InvalidRequirements, NotEnoughHosts
from climate.domain.facts import PlannedPart
from climate.domain.planning.preemption import is_preemptible
from climate.domain.policy import Caller
from climate.domain.reservation_spec import Spec
from climate.service.lease_tree import parts as lease_parts
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.reservations import Split
from climate.store.hosts.hosts import HOST_TYPE

log = structlog.get_logger(__name__)

NOT_HERE = (NotEnoughHosts, InvalidRequirements)
"""Refusals after which children are asked: their hosts may have properties that none here has."""

MOST_NAMED = 5
"""Maximum number of children that a refusal names."""

PATH = "!"
"""Separator of the names of cells in a path."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Hosts that a child could give."""

    child: Child
    hosts: int


@dataclass(frozen=True, slots=True)
class Places:
    """Deployments in which a reservation may lie."""

    is_here: bool
    """True: the reservation may lie in this deployment."""
    children: Sequence[Child]
    named: str = ""
    """Zone or cell that the reservation names."""


def begins_here(climate: Climate, order: LeaseRequest) -> bool:
    """Return whether children are asked only if this deployment lacks hosts.

    A reservation that may be spread gets the wanted number of hosts, not only the minimum.
    """
    is_open = any(spec.get("across") and int(spec["min"]) < int(spec["max"]) for spec in order.reservations)
    return all(is_for_here(climate, spec) for spec in order.reservations) and not (
        is_open and climate.children.active()
    )


def is_for_here(climate: Climate, spec: Spec) -> bool:
    """Return whether a reservation may lie in this deployment."""
    return _names_none(spec) or _names_this(climate, spec)


def is_only_for_here(climate: Climate, spec: Spec) -> bool:
    """Return whether a reservation must lie in this deployment, as preemptible ones do."""
    return is_preemptible(spec) or (not _names_none(spec) and _names_this(climate, spec))


def splits(climate: Climate, caller: Caller, order: LeaseRequest, without: frozenset[Child]) -> dict[int, Split]:
    """Return the splits of the reservations that lie in children, by index.

    Raises NotEnoughHosts if nobody has the hosts, and InvalidInput for an unknown zone or cell.
    """
    children = climate.children.active()
    result: dict[int, Split] = {}
    for index, spec in enumerate(order.reservations):
        if spec.get("resource_type") == HOST_TYPE:
            so_far = replace(order, reservations=order.reservations[: index + 1], splits=dict(result), hold=None)
            places = _places(climate, spec, children)
            left = [child for child in places.children if child not in without]
            split = _split_of_last(climate, caller, so_far, replace(places, children=left))
            if split:
                result[index] = split
    return result


def _names_none(spec: Spec) -> bool:
    return spec.get("zone") is None and spec.get("cell") is None


def _names_this(climate: Climate, spec: Spec) -> bool:
    settings, zone, cell = climate.settings, spec.get("zone"), spec.get("cell")
    if cell is None:
        return bool(zone == settings.zone_name)
    return zone is None and settings.cells_enable and bool(cell == settings.cell_name)


def _places(climate: Climate, spec: Spec, children: Sequence[Child]) -> Places:
    zone, cell = spec.get("zone"), spec.get("cell")
    if zone is not None and cell is not None:
        raise InvalidInput("zone and cell cannot both be given: a reservation names one of them")
    if _names_none(spec):
        return Places(is_here=True, children=children)
    kind, name = (ZONE, str(zone)) if cell is None else (CELL, str(cell))
    if _names_this(climate, spec):
        return Places(is_here=True, children=(), named=f"{kind} {name}")
    return Places(is_here=False, children=_children_called(children, kind, name), named=f"{kind} {name[:200]}")


def _children_called(children: Sequence[Child], kind: str, name: str) -> list[Child]:
    """Return the children of that kind and name; raise InvalidInput for none, and for several cells."""
    named = [child for child in children if child.kind == kind and _is_called(child, name)]
    if not named:
        known = "a child zone" if kind == ZONE else "a cell below it"
        raise InvalidInput(f"{kind} {name[:80]!r} is neither this {kind} nor {known} that answers")
    if kind == CELL and len(named) > 1:
        paths = ", ".join(sorted(child.name for child in named)[:5])
        raise InvalidInput(f"cell {name[:80]!r} may be {paths}: give the path")
    return named


def _is_called(child: Child, name: str) -> bool:
    return child.name == name or (child.kind == CELL and child.name.rpartition(PATH)[2] == name)


def _split_of_last(climate: Climate, caller: Caller, order: LeaseRequest, places: Places) -> Split | None:
    """Return the split of the last reservation; None: all of it is here. Raises NotEnoughHosts."""
    spec = order.reservations[-1]
    across = bool(spec.get("across"))
    own, refusal = 0, f"Not enough hosts available: {spec['min']} wanted in {places.named}"
    if places.is_here:
        reason = _refusal_here(climate, caller, _filled(order) if across else order)
        if reason is None:
            return None
        if isinstance(reason, InvalidRequirements) and not places.children:
            raise reason
        own = _own_hosts(climate, caller, order) if across else 0
        refusal = str(reason)
    least, most = int(spec["min"]), int(spec["max"])
    offers, silent = _offers(climate, caller, order, places.children, 1 if across else least)
    split = _split(own, offers, least, most) if across else _whole(offers, least, most)
    if split is not None or own >= least:
        return split
    skipped = () if places.named else climate.children.silent()
    raise NotEnoughHosts(f"{refusal}; {_offered(offers)}{silence([*skipped, *silent])}")


def _offered(offers: Sequence[Offered]) -> str:
    return f"children offer {', '.join(str(offer.hosts) for offer in offers) or 'none'}"


def _filled(order: LeaseRequest) -> LeaseRequest:
    """Return the order with the maximum number of hosts as the minimum of its last reservation."""
    spec = order.reservations[-1]
    return replace(order, reservations=(*order.reservations[:-1], {**spec, "min": spec["max"]}))


def _refusal_here(climate: Climate, caller: Caller, order: LeaseRequest) -> ClimateError | None:
    """Return the reason why this deployment cannot give the whole order; None: it can."""
    try:
        leases.create(climate, caller, order, dry_run=True)
    except NOT_HERE as error:
        return error
    return None


def _own_hosts(climate: Climate, caller: Caller, order: LeaseRequest) -> int:
    """Return the number of hosts that this deployment could give for the last reservation."""
    some = {**order.reservations[-1], "min": 1}
    try:
        tried = leases.create(
            climate, caller, replace(order, reservations=(*order.reservations[:-1], some)), dry_run=True
        )
    except NOT_HERE:
        return 0
    return len(tried.reservations[-1].holds)


def silence(children: Sequence[Child]) -> str:
    """Return the end of a refusal that names the children that do not answer; empty if there are none."""
    if not children:
        return ""
    names = list(dict.fromkeys(str(child) for child in children))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; no answer from {', '.join(names[:MOST_NAMED])}{more}"


def _offers(
    climate: Climate, caller: Caller, order: LeaseRequest, children: Sequence[Child], least: int
) -> tuple[list[Offered], list[Child]]:
    """Return the offers of children for the last reservation of the order, best first, and the silent children."""
    own = (*lease_parts.OWN, "resource_type")
    spec = {key: value for key, value in order.reservations[-1].items() if key not in own}
    wanted = {**spec, "min": least, "max": order.reservations[-1]["max"]}
    across = bool(order.reservations[-1].get("across"))
    asker = Asker(caller.project_id, lease_parts.role(caller))
    asked = [(child, {**wanted, **lease_parts.spread(child, across=across)}) for child in children]
    answers = climate.children.send_all(
        [PartRequest(child, asker, Offer(PartOrder(order.name, order.start, order.end, spec))) for child, spec in asked]
    )
    offers, silent = [], []
    for child, answer in zip(children, answers, strict=True):
        if isinstance(answer, CloudError):
            log.warning("child made no offer", child=str(child), reason=str(answer))
            silent.append(child)
        elif (held := lease_parts.held_in(answer)) is not None:
            offers.append(Offered(child, held[2]))
    best = sorted(offers, key=lambda offer: (-offer.hosts, offer.child.kind, offer.child.id, offer.child.name))
    return best, silent


def _whole(offers: Sequence[Offered], least: int, most: int) -> Split | None:
    """Return a split with all hosts in the child with the best offer."""
    best = next((offer for offer in offers if offer.hosts >= least), None)
    return Split(0, (_part(best.child, least, min(most, best.hosts)),)) if best else None


def _split(own: int, offers: Sequence[Offered], least: int, most: int) -> Split | None:
    """Return a split with the wanted number of hosts over as few deployments as possible, this one first."""
    own, parts = min(own, most), []
    left = most - own
    for offer in offers:
        if left <= 0:
            break
        count = min(left, offer.hosts)
        parts.append(_part(offer.child, count, count))
        left -= count
    return Split(own, tuple(parts)) if most - left >= least and parts else None


def _part(child: Child, least: int, most: int) -> PlannedPart:
    if child.kind == CELL:
        return PlannedPart(uuid4(), 0, "", least, most, cell=child.name)
    return PlannedPart(uuid4(), child.id, child.name, least, most)
