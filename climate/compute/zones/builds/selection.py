"""Selection: a read-only build plan for a request over this zone and everything below it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, ComputeError
from climate.compute.models.request import BootRequest, spec_of, zoned
from climate.compute.placement import request_data
from climate.compute.reservations import shared_capacity
from climate.compute.scheduler.cost_estimates import estimate
from climate.compute.scheduler.multi import BOOT
from climate.compute.scheduler.placement_plan import Trail
from climate.compute.store.zones import child_zones
from climate.compute.zones import routing
from climate.compute.zones.builds import request_spec
from climate.compute.zones.builds.orders import message
from climate.compute.zones.builds.plan import BadOffers, ChildItem, LocalItem, PlanItem, merged, offers, scaled, written
from climate.compute.zones.builds.request_spec import RequestSpec
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildRequest
from climate.compute.zones.models import FROM_USER, NO_PARTS, ChildZone, Parts, ZoneChain

LISTED = 20
"""Maximum number of a child's weights in its report."""

NOT_ASKED = "was skipped: it has not answered lately"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Request for a plan of `request.count` servers; children look up the image by name."""

    request: BootRequest
    image: str | None = None
    chain: ZoneChain = FROM_USER
    parts: Parts = field(default_factory=dict)
    """Parts of its reservations in child zones; only these zones are asked."""


@dataclass(frozen=True, slots=True)
class ZoneReport:
    """Answer of one zone: of a child, or of this zone if `zone_id` is None."""

    zone_id: int | None = None
    name: str | None = None
    reason: str | None = None
    """Reason why it offers nothing, for administrators."""
    summary: str | None = None
    """The same reason for users, without addresses."""
    offset: float = 0.0
    scale: float = 1.0
    offered: int = 0
    weights: tuple[tuple[float, float], ...] = ()
    """(child's weight, weight on the scale of this zone) of the first offers."""

    @property
    def label(self) -> str:
        """Return the name of the zone for users."""
        return "this zone" if self.zone_id is None else self.name or f"zone {self.zone_id}"

    def plain(self) -> dict[str, object]:
        """Return the report as plain values."""
        return {
            "zone_id": self.zone_id,
            "name": self.name,
            "reason": self.reason,
            "weight_offset": self.offset,
            "weight_scale": self.scale,
            "offered": self.offered,
            "weights": [list(pair) for pair in self.weights],
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """Plan, and the report of each zone."""

    plan: tuple[PlanItem, ...]
    reports: tuple[ZoneReport, ...] = ()
    trail: Trail = field(default_factory=dict)
    """Trail of this zone's scheduler."""

    @property
    def reasons(self) -> list[str]:
        """Return the reasons of zones without offers, for users."""
        return [f"{report.label}: {report.summary or report.reason}" for report in self.reports if report.reason]


@dataclass(frozen=True, slots=True)
class Children:
    """Children to ask, with decrypted passwords, and reports of skipped ones."""

    asked: tuple[ChildZone, ...] = ()
    others: tuple[ZoneReport, ...] = ()


def select(compute: Compute, request: PlanRequest) -> Selection:
    """Return the plan for a request: nodes of this zone and offers of its children, best first.

    Each zone offers at most one place per server. A child that does not answer delays the plan until its deadline, but
    does not fail it.
    """
    reason = request_spec.stays(request.request, request.parts)
    with _read_only(compute) as conn:
        children = Children() if reason else chosen(compute, conn, request.parts)
    with ThreadPoolExecutor(max_workers=1) as pool:
        asking = pool.submit(_request_offers, compute, children.asked, request)
        local, own, trail = _local(compute, request.request)
        answered = asking.result()
    plan = merged(local, [items for items, _ in answered])
    reports = (own, *(report for _, report in answered), *children.others)
    return Selection(plan, reports, trail)


def room(compute: Compute, request: BootRequest) -> int:
    """Return the number of servers of a request that fit in this deployment alone."""
    return len(_local(compute, request)[0])


def for_parent(
    compute: Compute,
    spec: RequestSpec,
    who: Mapping[str, object],
    chain: ZoneChain = FROM_USER,
    parts: Parts = NO_PARTS,
) -> list[dict[str, object]]:
    """Return the answer to a parent's spec: readable weights, and blobs for this zone, at most one per server.

    `parts`: the parts of its reservations in child zones.

    Raise NoBlobKey, and BadRequest for a missing flavor or image.
    """
    compute.zones.blobs.check()
    with _read_only(compute) as conn:
        request = request_spec.request_of(conn, spec, who)
    return sealed(compute, select(compute, PlanRequest(request, spec.image, chain, parts)).plan[: spec.count])


def sealed(compute: Compute, plan: Sequence[PlanItem]) -> list[dict[str, object]]:
    """Return the plan for a parent: readable weights, and blobs for this zone. Raise NoBlobKey."""
    with _read_only(compute) as conn:
        now = compute.now(conn)
    blobs = compute.zones.blobs.seal(compute.zones.own_id(), [written(item) for item in plan], now)
    return [{"weight": item.weight, "blob": blob} for item, blob in zip(plan, blobs, strict=True)]


def chosen(compute: Compute, conn: Connection, parts: Parts = NO_PARTS) -> Children:
    """Return the children to ask now; with `parts`, only those that have some."""
    now, asked, others = compute.now(conn), [], []
    for zone in child_zones.listed(conn):
        if parts and zone.id not in parts:
            continue
        try:
            reason = None if zone.is_asked(now) else NOT_ASKED
            opened = zone if reason else replace(zone, password=compute.zones.unseal(zone.password))
        except ComputeError as sealed_for_good:
            reason, opened = str(sealed_for_good), zone
        if reason:
            others.append(replace(_report(zone), reason=reason, summary=NOT_ASKED))
        else:
            asked.append(opened)
    return Children(tuple(asked), tuple(others))


def _read_only(compute: Compute) -> Connection:
    """Return a read-only connection."""
    return compute.engine.connect().execution_options(postgresql_readonly=True)


def _local(compute: Compute, request: BootRequest) -> tuple[list[LocalItem], ZoneReport, Trail]:
    """Return the offers of this zone, its report, and the trail of its scheduler."""
    compute = compute.scheduling(BOOT)
    trust = compute.attested(request.flavor)
    try:
        with _read_only(compute) as conn:
            spec = spec_of(zoned(request, compute.rules.options.schedule_zone))
            request_data.check_image(conn, request.image_id, request.flavor)
            shared_capacity.check_hints(conn, spec)
            request_data.check_place(conn, spec, compute.rules.options.default_zone)
            hosts = compute.roster.take(conn, compute.now(conn), compute.down_seconds)
            completed = request_data.completed(conn, compute.rules, spec)
            spec = replace(completed, trust=trust, slots=shared_capacity.slots(conn, hosts, spec))
        plan = estimate(compute.schedule, hosts, spec, request.count, compute.rules, compute.tell)
    except BadRequest as refused:
        return [], ZoneReport(reason=str(refused)), {}
    items = [LocalItem(pick.weight, pick.service_host, pick.node) for pick in plan.picks]
    reason = None if items else "no host is left for it"
    return items, ZoneReport(reason=reason, offered=len(items)), plan.trail


def _request_offers(
    compute: Compute, children: Sequence[ChildZone], request: PlanRequest
) -> list[tuple[list[ChildItem], ZoneReport]]:
    """Return the offers of children, in their order."""
    if compute.zones.client is None or not children:
        return []
    asked = [
        (zone, ChildRequest("POST", "/zones/select", _spec_for(zone, request), chain=request.chain))
        for zone in children
    ]
    answers = routing.send(compute, asked)
    return [_offered(zone, answer, request) for zone, answer in zip(children, answers, strict=True)]


def _spec_for(zone: ChildZone, wanted: PlanRequest) -> dict[str, object]:
    request = request_spec.in_child(wanted.request, wanted.parts, zone.id)
    return request_spec.written(request, wanted.image, request.count)


def _offered(
    zone: ChildZone, answer: ChildAnswer | ChildError, request: PlanRequest
) -> tuple[list[ChildItem], ZoneReport]:
    reason, summary = None, None
    items: list[ChildItem] = []
    if isinstance(answer, ChildError):
        reason, summary = str(answer), "does not answer"
    elif not answer.is_good:
        reason = message(answer)
    else:
        try:
            items = scaled(zone, offers(answer.body, request.request.count))
            reason = None if items else "has no room for it"
        except BadOffers as wrong:
            reason = f"its answer {wrong}"
    weights = tuple((item.raw_weight, item.weight) for item in items[:LISTED])
    return items, replace(_report(zone), reason=reason, summary=summary, offered=len(items), weights=weights)


def _report(zone: ChildZone) -> ZoneReport:
    return ZoneReport(zone.id, zone.name, offset=zone.weight_offset, scale=zone.weight_scale)


def plain(reports: Sequence[ZoneReport]) -> list[Mapping[str, object]]:
    """Return reports as plain values for a decision."""
    return [report.plain() for report in reports]
