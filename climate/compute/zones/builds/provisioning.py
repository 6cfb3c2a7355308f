"""Provisioning of a build: orders to children and boots in this zone run in parallel, in the order of the plan."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict
from climate.compute.models.request import BootRequest
from climate.compute.models.server import Server
from climate.compute.placement import decisions
from climate.compute.placement.decisions import Decision
from climate.compute.servers import create
from climate.compute.servers.create import Offered
from climate.compute.store.zones import builds as rows
from climate.compute.store.zones import child_zones, servers
from climate.compute.store.zones.builds import SENT, Build, Item
from climate.compute.zones.builds import placement, request_spec, selection
from climate.compute.zones.builds.builds import claim_seconds, number_name, parts_of
from climate.compute.zones.builds.orders import Outcome, Refused, ServerBuilt, ServerOrder, Unknown, request_for
from climate.compute.zones.builds.placement import Placed
from climate.compute.zones.builds.plan import ChildItem, LocalItem, PlanItem
from climate.compute.zones.builds.selection import PlanRequest, Selection
from climate.compute.zones.models import ChildZone, Parts
from climate.database.connections import reading

log = structlog.get_logger(__name__)

AT_ONCE = 8
"""Maximum number of concurrent orders per child."""

FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0
"""Seconds between attempts to reach children that did not answer."""

MOST_REASONS = 10

PLANNED = 100
"""Maximum number of plan items in a decision."""

T = TypeVar("T")

Assigned = tuple[int, PlanItem]
"""Number of a server in its build, and the plan item it is placed on."""

Sent = tuple[int, ChildZone, str]
"""Number of a server, the child to build it, and its blob for that child."""


class _Lost(Exception):
    """Raised if another worker has the build."""


@dataclass(slots=True)
class _Work:
    """Build claimed by one worker."""

    compute: Compute
    build: Build
    worker: str
    request: BootRequest
    image: str | None
    parts: Parts = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    """Reasons why servers were not placed, for their owner."""

    def check(self, conn: Connection) -> None:
        """Renew the claim. Raise _Lost. The row stays locked until the transaction ends."""
        if not rows.renew(conn, self.build.id, self.worker, self.compute.now(conn), claim_seconds(self.compute)):
            raise _Lost

    def order(self, number: int, blob: str) -> ServerOrder:
        """Return the order for one server."""
        name, build = number_name(self.build, self.request, number), self.build
        return ServerOrder(name, blob, build.reservation_id, build.id, number, build.project_id, build.user_id)

    def failed(self, reason: str) -> None:
        """Record a reason, without duplicates."""
        if reason not in self.reasons and len(self.reasons) < MOST_REASONS:
            self.reasons.append(reason)


def run(compute: Compute, build_id: str, worker: str | None = None) -> None:
    """Run a build unless another worker has it or it is finished; `worker` has claimed it already."""
    mine = worker or str(uuid4())
    with compute.engine.begin() as conn:
        if worker is None and not rows.claim(conn, build_id, mine, compute.now(conn), claim_seconds(compute)):
            return
        build = rows.get(conn, build_id)
    if build is None:
        return
    request = request_spec.reread_request(build.request["boot"])
    work = _Work(compute, build, mine, request, build.request["image"], parts_of(build))
    try:
        _repeat(work)
        _place_open(work)
        _conclude(work)
    except _Lost:
        log.info("build taken over by another worker", build_id=build_id)


def _repeat(work: _Work) -> None:
    """Repeat orders without a known answer; those of a removed zone are lost."""
    left, lost = _unanswered(work)
    _lose(work, lost)
    silent: set[int] = set()
    while left:
        batch, left = _at_once(left, _zone_of_order)
        orders = [order for order in batch if _zone_of_order(order) not in silent]
        outcomes = _send(work, orders, repeated=True)
        silent |= {zone.id for number, zone, _ in orders if isinstance(outcomes[number], Unknown)}


def _unanswered(work: _Work) -> tuple[list[Sent], list[int]]:
    """Return the orders without a known answer, and the numbers of the servers whose zone was removed."""
    with reading(work.compute.engine) as conn:
        items = [item for item in rows.of(conn, work.build.id) if item.state == SENT]
        zones = {zone.id: zone for zone in child_zones.listed(conn)}
    orders = [(item.launch_index, zones[item.zone_id], item.blob or "") for item in items if item.zone_id in zones]
    return orders, [item.launch_index for item in items if item.zone_id not in zones]


def _lose(work: _Work, numbers: Sequence[int]) -> None:
    if numbers:
        with work.compute.engine.begin() as conn:
            work.check(conn)
            rows.lose(conn, work.build.id, numbers)


def _zone_of_order(order: Sent) -> int:
    return order[1].id


def _place_open(work: _Work) -> None:
    """Place the servers without a zone that were not given up."""
    with reading(work.compute.engine) as conn:
        known = {item.launch_index for item in rows.of(conn, work.build.id)}
    given_up = set(work.build.report.get("given_up", ()))
    open_ones = [number for number in range(work.build.requested) if number not in known | given_up]
    if not open_ones:
        return
    if request_spec.stays(work.request, work.parts):
        _boot_here(work, open_ones, None)
        return
    wanted = replace(work.request, count=len(open_ones), least=1)
    chosen = selection.select(work.compute, PlanRequest(wanted, work.image, parts=work.parts))
    _decide(work, chosen)
    for reason in chosen.reasons:
        work.failed(reason)
    plan = chosen.plan
    if work.request.hints.get("reserved"):  # the zone that has the server creates the lease too
        plan = tuple(item for item in plan if isinstance(item, ChildItem))
    if len(plan) >= work.request.least - len(known):
        _assign_items(work, open_ones, plan)


def _assign_items(work: _Work, numbers: Sequence[int], plan: Sequence[PlanItem]) -> None:
    """Assign each server a plan item, and unplaced ones another, until the plan ends."""
    queue: list[Assigned] = list(zip(numbers, plan, strict=False))
    rest = list(plan[len(numbers) :])
    while queue:
        batch, queue = _at_once(queue, lambda entry: _zone_of(entry[1]))
        outcomes = _together(work, batch)
        silent = {_zone_of(item) for number, item in batch if isinstance(outcomes[number], Unknown)}
        refused = [number for number, _ in batch if isinstance(outcomes[number], Refused)]
        queue, rest = _reassigned(queue, rest, refused, silent)


def _reassigned(
    queue: Sequence[Assigned], rest: Sequence[PlanItem], refused: Sequence[int], silent: Set[int | None]
) -> tuple[list[Assigned], list[PlanItem]]:
    """Return the servers to place next with their plan items, and the plan items that are left, without silent zones.

    The refused servers and those in the queue for silent zones get the first of `rest`.
    """
    answering = [item for item in rest if _zone_of(item) not in silent]
    stay = [(number, item) for number, item in queue if _zone_of(item) not in silent]
    again = [*refused, *(number for number, item in queue if _zone_of(item) in silent)]
    return [*stay, *zip(again, answering, strict=False)], answering[len(again) :]


def _zone_of(item: PlanItem) -> int | None:
    return item.child_zone if isinstance(item, ChildItem) else None


def _at_once(queue: Sequence[T], zone_of: Callable[[T], int | None]) -> tuple[list[T], list[T]]:
    """Return the entries to send now and those that wait: AT_ONCE orders per child, all for this zone."""
    taken: Counter[int] = Counter()
    batch: list[T] = []
    rest: list[T] = []
    for entry in queue:
        zone = zone_of(entry)
        if zone is not None:
            taken[zone] += 1
        (batch if zone is None or taken[zone] <= AT_ONCE else rest).append(entry)
    return batch, rest


def _together(work: _Work, batch: Sequence[Assigned]) -> dict[int, Outcome]:
    """Run the orders of children and the boots of this zone in parallel."""
    with reading(work.compute.engine) as conn:
        zones = {zone.id: zone for zone in child_zones.listed(conn)}
    orders = [
        (number, zones[item.child_zone], item.child_blob)
        for number, item in batch
        if isinstance(item, ChildItem) and item.child_zone in zones
    ]
    gone = [number for number, item in batch if isinstance(item, ChildItem) and item.child_zone not in zones]
    outcomes: dict[int, Outcome] = {number: Refused("the zone was removed") for number in gone}
    _assign(work, orders)
    with ThreadPoolExecutor(max_workers=1) as pool:
        sending = pool.submit(_send, work, orders)
        for destination, numbers in _by_node(batch).items():
            outcomes |= _boot_here(work, numbers, destination)
        return outcomes | sending.result()


def _by_node(batch: Sequence[Assigned]) -> Mapping[str, list[int]]:
    """Return the numbers of the servers to boot in this zone, by the destination of their node."""
    numbers: dict[str, list[int]] = {}
    for number, item in batch:
        if isinstance(item, LocalItem):
            numbers.setdefault(f"{item.hostname}:{item.nodename}", []).append(number)
    return numbers


def _assign(work: _Work, orders: Sequence[Sent]) -> None:
    """Record orders before they are sent."""
    by_zone: dict[int, dict[int, str]] = {}
    for number, zone, blob in orders:
        by_zone.setdefault(zone.id, {})[number] = blob
    with work.compute.engine.begin() as conn:
        work.check(conn)
        for zone_id, blobs in by_zone.items():
            rows.assign(conn, work.build.id, zone_id, blobs)


def _send(work: _Work, orders: Sequence[Sent], *, repeated: bool = False) -> dict[int, Outcome]:
    """Send recorded orders, and record their outcomes; `repeated`: they may have been sent before."""
    if not orders:
        return {}
    made = {number: work.order(number, blob) for number, _, blob in orders}
    with reading(work.compute.engine) as conn:
        request = request_spec.with_key(conn, work.request)
    requests = [
        (zone, request_for(made[number], request_spec.in_child(request, work.parts, zone.id), work.image))
        for number, zone, _ in orders
    ]
    answers = placement.send_all(work.compute, requests, repeated=repeated)
    outcomes = {number: outcome for (number, _, _), outcome in zip(orders, answers, strict=True)}
    _record_outcomes(work, orders, made, outcomes)
    return outcomes


def _record_outcomes(
    work: _Work, orders: Sequence[Sent], made: Mapping[int, ServerOrder], outcomes: Mapping[int, Outcome]
) -> None:
    """Record the servers that were built; those that were refused are open again, with the reasons for their owner."""
    zones = {number: zone for number, zone, _ in orders}
    built = {number: outcome.server_id for number, outcome in outcomes.items() if isinstance(outcome, ServerBuilt)}
    refused = {number: outcome.reason for number, outcome in outcomes.items() if isinstance(outcome, Refused)}
    with work.compute.engine.begin() as conn:
        work.check(conn)
        rows.placed(conn, work.build.id, {number: (zones[number].id, server) for number, server in built.items()})
        rows.unassign(conn, work.build.id, list(refused))
        for number, server_id in built.items():
            owned = placement.owned(work.request, made[number], Placed(server_id, zones[number].id))
            servers.add(conn, owned)
    for number, reason in refused.items():
        work.failed(f"{zones[number].name or f'zone {zones[number].id}'}: {reason}")


def _boot_here(work: _Work, numbers: Sequence[int], destination: str | None) -> dict[int, Outcome]:
    """Boot servers on a node of this zone, or on any, as many as fit."""
    names = tuple(number_name(work.build, work.request, number) for number in numbers)

    def write(conn: Connection, made: Sequence[Server]) -> None:
        work.check(conn)
        rows.placed(conn, work.build.id, {server.launch_index: (None, server.id) for server in made})

    offered = Offered(work.build.reservation_id, tuple(numbers), names, destination, write, counted=True)
    try:
        made = create.place(work.compute, work.request, offered)
    except (BadRequest, Conflict) as refused:
        work.failed(f"this zone: {refused}")
        return {number: Refused(str(refused)) for number in numbers}
    built: dict[int, Outcome] = {server.launch_index: ServerBuilt(server.id) for server in made}
    return {number: built.get(number) or Refused("no room is left") for number in numbers}


def _decide(work: _Work, chosen: Selection) -> None:
    """Record the answers of all zones, as an explanation of the placement."""
    trail: dict[str, object] = {key: value for key, value in chosen.trail.items() if key not in ("picks", "more_picks")}
    trail |= {"zones": selection.plain(chosen.reports), "plan": [_report_entry(item) for item in chosen.plan[:PLANNED]]}
    with work.compute.engine.begin() as conn:
        work.check(conn)
        now = work.compute.now(conn)
        decisions.store(conn, Decision(work.build.reservation_id, None, now, decisions.ZONES, trail))
        rows.report(conn, work.build.id, {**work.build.report, "zones": trail["zones"]})


def _report_entry(item: PlanItem) -> Mapping[str, object]:
    if isinstance(item, ChildItem):
        return {"weight": item.weight, "raw_weight": item.raw_weight, "zone_id": item.child_zone}
    return {"weight": item.weight, "host": item.hostname, "node": item.nodename}


def _conclude(work: _Work) -> None:
    """Finish the build, or let it wait for children without an answer."""
    build = work.build
    why = "; ".join(work.reasons) or str(build.report.get("why", ""))
    with work.compute.engine.begin() as conn:
        work.check(conn)
        items, now = rows.of(conn, build.id), work.compute.now(conn)
        given_up = sorted(set(range(build.requested)) - {item.launch_index for item in items})
        fault = _fault(build.requested, items, why)
        unknown = [item for item in items if item.state == SENT]
        latest = rows.get(conn, build.id) or build
        waits = int(build.report.get("waits", 0))
        rows.report(conn, build.id, {**latest.report, "given_up": given_up, "waits": waits + 1, "why": why})
        if unknown:
            pause = min(FIRST_WAIT * 2 ** min(waits, 10), LONGEST_WAIT)
            rows.rest(conn, build.id, now + timedelta(seconds=pause), fault, len(unknown))
        else:
            rows.finish(conn, build.id, now, fault)


def _fault(wanted: int, items: Iterable[Item], why: str) -> str | None:
    """Return the message for the owner: how many servers were placed, and why not all."""
    states = [item.state for item in items]
    placed = states.count(rows.PLACED)
    if placed == wanted:
        return None
    unknown = states.count(SENT) + states.count(rows.LOST)
    text = f"{placed} of {wanted} servers were placed."
    if unknown:
        text += f" {unknown} may be in a zone that does not answer."
    if placed + unknown < wanted:
        reason = why.rstrip(".") or "no zone has room"
        text += f" No valid host was found for {wanted - placed - unknown}: {reason}."
    return text
