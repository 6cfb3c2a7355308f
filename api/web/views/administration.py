"""Pages for administrators: failed events, the audit trail, the pools at a past time, power, and the tree below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api import unreadable_leases
from api.request_context import caller, climate, compute, identity
from api.reservation.ids import path_id
from api.web import form_fields
from api.web.blueprint import PREFIX, page
from climate.compute.cells import neighbours
from climate.compute.cells.state import state
from climate.compute.zones import registry
from climate.domain.audit_trail import AuditKind
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import EventStatus
from climate.identity.models import AccountNames
from climate.service.events import events
from climate.service.host_operations import pool_scaling
from climate.service.hosts import inventory, pool_history, timeline
from climate.service.hosts.timeline import TimelineWindow
from climate.service.journal import audit_trail as audit
from climate.service.journal.audit_trail import AuditEntry, AuditQuery
from climate.service.power import power
from climate.whole_numbers import whole_number

ROWS = 100
MOST_POWERED = 100_000
AHEAD = timedelta(days=7)
POINTS = 168
USUALLY_AGO = timedelta(days=1)
LONGEST = 255


@page("GET", "/failed-events", "events:get")
def failed_events() -> ResponseReturnValue:
    """List the events that failed for good, with their reasons."""
    after = request.args.get("after", "")
    marker = path_id(after, "There is no such event") if after else None
    rows = events.rows(climate(), caller(), EventStatus.ERROR, ROWS + 1, marker)
    following = rows[ROWS - 1][0] if len(rows) > ROWS else None
    found = [(lease, lease.event(number)) for number, lease in rows[:ROWS] if isinstance(lease, Lease)]
    names = identity().names((), {lease.project_id for lease, _ in found})
    left_out = unreadable_leases.notices(lease for _, lease in rows[:ROWS])
    return render_template("failed_events.html", rows=found, following=following, names=names, left_out=left_out)


@page("POST", "/failed-events/<event_id>/requeue", "events:requeue")
def requeue(event_id: str) -> ResponseReturnValue:
    """Run a failed event again."""
    try:
        lease = events.requeue(climate(), caller(), _event(event_id))
    except ClimateError as refusal:
        flash(str(refusal), "error")
    else:
        flash(f"The event of lease {lease.name} runs again.", "good")
    return redirect(f"{PREFIX}/failed-events", 303)


def _event(text: str) -> UUID:
    return path_id(text, f"There is no event {text[:80]}")


@page("GET", "/audit", "audit:get")
def audit_trail() -> ResponseReturnValue:
    """List administrative changes with their authors, newest first; users and projects are filtered by name or id."""
    given = request.args
    found = audit.listed(climate(), caller(), _audit_query(given))
    asked = {name: given.get(name, "") for name in ("kind", "object", "author", "project", "since", "until")}
    following = found[ROWS - 1].position if len(found) > ROWS else None
    return render_template(
        "audit.html",
        rows=found[:ROWS],
        following=following,
        asked=asked,
        kinds=list(AuditKind),
        names=_names(found),
        hosts=_host_names(found),
    )


def _audit_query(form: form_fields.Form) -> AuditQuery:
    """Return the filters of the page; one more change than a page has shows that another page follows."""
    kind = form.get("kind", "")
    author, project = (form.get(name, "").strip()[:LONGEST] for name in ("author", "project"))
    user_id, project_id = identity().account_ids(author, project)
    return AuditQuery(
        kind=AuditKind(kind) if kind in list(AuditKind) else None,
        object_id=form.get("object", "")[:LONGEST] or None,
        author=user_id or author or None,
        project_id=project_id or project or None,
        since=form_fields.moment(form, "since"),
        until=form_fields.moment(form, "until"),
        marker=form_fields.marker(form, "before"),
        limit=ROWS + 1,
    )


def _names(entries: Sequence[AuditEntry]) -> AccountNames:
    """Return the names of the users and projects of changes: their authors, their objects, and in their values."""
    objects = {entry.change.object_id for entry in entries if not entry.change.name}
    owners = {entry.change.project_id for entry in entries if entry.change.project_id}
    authors = {entry.author for entry in entries}
    named = _values(entries, "project_id") | _values(entries, "default_project_id")
    return identity().names(authors | _values(entries, "user_id"), objects | owners | named)


def _host_names(entries: Sequence[AuditEntry]) -> Mapping[str, str]:
    """Return the names of the hosts that values of changes mention, by their numbers."""
    numbers = {whole_number(one) for one in _values(entries, "host_id")}
    known = inventory.names(climate(), caller(), {number for number in numbers if number is not None})
    return {str(number): name for number, name in known.items()}


def _values(entries: Sequence[AuditEntry], field: str) -> set[str]:
    """Return the values of a field before and after changes."""
    sides = (side for entry in entries for side in (entry.change.before, entry.change.after) if side)
    return {str(side[field]) for side in sides if side.get(field)}


@page("GET", "/past", "pools:get")
def past() -> ResponseReturnValue:
    """Show the pools as they were at a time."""
    asked = request.args.get("at", "")
    try:
        moment = form_fields.moment(request.args, "at") or datetime.now(UTC) - USUALLY_AGO
        then = pool_history.at(climate(), caller(), moment)
    except InvalidInput as refusal:
        return render_template("past.html", asked=asked, moment=None, pools={}, refusal=str(refusal)), 400
    return render_template("past.html", asked=form_fields.local(moment), moment=moment, pools=then, refusal="")


@page("GET", "/power", "power:get")
def energy() -> ResponseReturnValue:
    """Show the power of hosts, and the plan of the reservation pool drawn against its backlog."""
    engine, own = climate(), caller()
    plan = pool_scaling.explain(engine, own, Pool.RESERVATION)
    saved = power.report(engine, own, None, None)
    powered = power.listed(engine, own, None, MOST_POWERED)
    chart = _chart(sum(one.place.on for one in powered) if powered else None, plan)
    return render_template(
        "power.html", plan=plan, chart=chart, saved=saved, powered=powered[:ROWS], known=len(powered)
    )


@dataclass(frozen=True, slots=True)
class ChartBar:
    """Part of a chart, in percent of its width and height."""

    start: datetime
    end: datetime
    hosts: int
    left: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Promised hosts of the days to come, and the heights of the numbers that they are compared with."""

    bars: Sequence[ChartBar]
    lines: Mapping[str, tuple[int, float]]
    """Words of a line, with its number and its height in percent."""


def _chart(switched_on: int | None, plan: pool_scaling.Explained) -> Chart:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    shown = timeline.read(climate(), caller(), TimelineWindow(start, start + AHEAD, limit=1, points=POINTS))
    points = [(datetime.fromtimestamp(at, UTC), shown.bookable - free) for at, free in shown.free or ()]
    wanted = {"wanted hosts of the pool": plan.plan.wanted}
    wanted |= {} if switched_on is None else {"hosts with power settings that are on": switched_on}
    most = max(1, shown.bookable, *wanted.values())
    ends = [*(at for at, _ in points[1:]), start + AHEAD]
    bars = [
        ChartBar(at, end, hosts, 100 * (at - start) / AHEAD, 100 * (end - at) / AHEAD, 100 * hosts / most)
        for (at, hosts), end in zip(points, ends, strict=True)
    ]
    return Chart(bars, {words: (number, 100 * number / most) for words, number in wanted.items()})


@page("GET", "/tree", "compute:admin")
def tree() -> ResponseReturnValue:
    """Show the zones and cells below this deployment, with their state and capacity."""
    cloud = compute()
    zones = registry.listed(cloud) if cloud is not None else []
    now = datetime.now(UTC)
    cells = (
        [(cell, state.described(cloud, cell, now)) for cell in neighbours.listed(cloud)] if cloud is not None else []
    )
    name = registry.info(cloud).get("name", "") if cloud is not None else ""
    return render_template("tree.html", name=name, zones=zones, cells=cells)
