"""Leases: list, page, history, and changes."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from flask import Response, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api import unreadable_leases
from api.request_context import caller, climate, identity
from api.reservation.ids import marker_id, path_id
from api.reservation.zone_tree import over_the_tree
from api.web import form_fields, lease_words, search_query
from api.web.blueprint import HOME, PREFIX, page
from climate.domain.errors import ClimateError, InvalidInput, NotFound, UnreadableLease
from climate.domain.lease import Lease
from climate.domain.sharing.sharing import Access, may_boot
from climate.domain.status import LeaseStatus
from climate.service.availability.question import present
from climate.service.calendars import ics
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases import host_visibility, leases
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.sharing import access
from climate.service.subleases import listing
from climate.service.waiting_list import places
from climate.store.leases.leases import Listing
from climate.store.notices.calendar_feeds import Entry
from climate.store.notices.notifications import Listing as Notices

LIST = f"{PREFIX}/leases"
ON_A_PAGE = 50
MOST_NOTICES = 50
STEPS = tuple(timedelta(hours=hours) for hours in (1, 4, 24, 72, 168))
"""Lengths by which the page of a lease offers to prolong it."""
CHANGE = (Access.OWNER, Access.EXTENDER, Access.PARENT)
"""Relations to a lease in which its end can be moved."""
STATUSES = tuple(str(status) for status in LeaseStatus)


@page("GET", "/leases", "leases:get")
def list_all() -> ResponseReturnValue:
    """List the leases of the project, or for administrators of all projects, by pages."""
    given = request.args
    everybody = caller().is_admin and given.get("all", "") == "1"
    rows = leases.rows(climate(), caller(), _filters(given, everybody))
    known = [row for row in rows[:ON_A_PAGE] if isinstance(row, Lease)]
    return render_template(
        "leases.html",
        leases=known,
        left_out=unreadable_leases.notices(rows[:ON_A_PAGE]),
        lines=places.of(climate(), known),
        given=given,
        following=_next_page(given, rows),
        statuses=STATUSES,
        names=identity().names((), {one.project_id for one in known} if everybody else ()),
        words=lease_words,
    )


def _filters(form: form_fields.Form, everybody: bool) -> Listing:
    """Return the filters of the list; one more lease than a page has shows that another page follows."""
    name, status = form_fields.text(form, "name"), form.get("status", "")
    if status and status not in STATUSES:
        raise InvalidInput(f"status is {status[:20]!r}: expected is one of {', '.join(STATUSES)}")
    return Listing(
        project_id=caller().project_id if caller().is_admin and not everybody else None,
        status=status or None,
        name=name or None,
        starts_before=form_fields.moment(form, "before"),
        ends_after=form_fields.moment(form, "after"),
        marker=marker_id(form.get("marker")),
        limit=ON_A_PAGE + 1,
    )


def _next_page(form: form_fields.Form, rows: Sequence[Lease | UnreadableLease]) -> dict[str, str] | None:
    """Return the query of the next page; None if there is none."""
    if len(rows) <= ON_A_PAGE:
        return None
    last = rows[ON_A_PAGE - 1]
    kept = {key: value for key, value in form.items() if key in ("name", "status", "all", "before", "after") and value}
    return {**kept, "marker": str(last.lease_id if isinstance(last, UnreadableLease) else last.id)}


@page("GET", "/leases/<lease_id>", "leases:get")
def show(lease_id: str) -> ResponseReturnValue:
    """Show a lease as it is, as it was at a time, or after a step of its history."""
    known, at = _id(lease_id), form_fields.moment(request.args, "at")
    history = lease_words.happenings(leases.history(climate(), caller(), known))
    step = form_fields.number(request.args, "step", 0, 1, max(1, len(history)))
    at = history[step - 1].at if 0 < step < len(history) and at is None else at
    lease = leases.get(climate(), caller(), known, at)
    now, known_as = present(climate()), access.relation(caller(), lease)
    place = places.estimated(climate(), lease) if at is None else None
    return render_template(
        "lease.html",
        lease=lease,
        at=at,
        now=now,
        hosts=host_visibility.listed(climate(), caller(), known) if at is None else [],
        history=history,
        step=step or lease_words.steps_until(history, at),
        notices=delivery.listed(climate(), caller(), Notices(lease_id=known, limit=MOST_NOTICES)),
        lines={lease.id: place} if place else {},
        longer=_longer(lease) if at is None and caller().has("member") and known_as in CHANGE else [],
        relation=known_as,
        subleases=_subleases(lease) if known_as is Access.OWNER else {},
        bootable=may_boot(lease.project_id, lease.sharing, caller()),
        words=lease_words,
        moment_value=form_fields.local(lease.period.end),
        lengths=search_query,
    )


def _subleases(lease: Lease) -> dict[str, str]:
    """Return the names of the sub-leases of a lease by their ids; without any, nothing is read."""
    if not lease_words.subleases(lease):
        return {}
    return {str(one.id): one.name for one in listing.of_parent(climate(), caller(), lease.id) if isinstance(one, Lease)}


def _longer(lease: Lease) -> list[tuple[timedelta, str]]:
    """Return lengths by which a lease may be prolonged, the first that does not fit last, with the reason.

    A trial takes a dozen statements. What does not fit for some time does not fit for longer, so three trials suffice.
    """
    if not lease_words.can_change(lease):
        return []
    reasons: dict[timedelta, str] = {}

    def clashes(step: timedelta) -> bool:
        reasons[step] = _refusal(lease, lease.period.end + step)
        return reasons[step] != ""

    first = bisect_left(STEPS, True, key=clashes)
    return [(step, reasons.get(step, "")) for step in STEPS[: first + 1]]


def _refusal(lease: Lease, end: datetime) -> str:
    """Return why a lease cannot end at this time, or an empty text; change nothing."""
    try:
        tree_leases.update(over_the_tree(), caller(), lease.id, Changes(end=end), lease.version, dry_run=True)
    except ClimateError as error:
        return str(error)
    return ""


@page("POST", "/leases/<lease_id>/prolong", "leases:put")
def prolong(lease_id: str) -> ResponseReturnValue:
    """Prolong a lease by a length."""
    by = form_fields.length(request.form, "by", timedelta(0))
    if not by:
        raise InvalidInput("by is missing: a time such as 1h or 1d is expected")
    lease = leases.get(climate(), caller(), _id(lease_id))
    return _changed(lease.id, Changes(end=lease.period.end + by), "prolonged")


@page("POST", "/leases/<lease_id>/end", "leases:put")
def change_end(lease_id: str) -> ResponseReturnValue:
    """Move the end of a lease, or end it now."""
    known = _id(lease_id)
    if request.form.get("now"):
        return _changed(known, Changes(end_now=True), "ended")
    end = form_fields.moment(request.form, "end")
    if end is None:
        raise InvalidInput("end is missing: a time such as 2030-01-31T18:00 is expected")
    return _changed(known, Changes(end=end), "changed")


@page("POST", "/leases/<lease_id>/name", "leases:put")
def rename(lease_id: str) -> ResponseReturnValue:
    """Give a lease another name."""
    return _changed(_id(lease_id), Changes(name=form_fields.text(request.form, "name") or None), "renamed")


def _changed(lease_id: UUID, changes: Changes, done: str) -> ResponseReturnValue:
    """Change a lease, and return to its page or to the one that the form names; say what was refused."""
    try:
        lease = tree_leases.update(over_the_tree(), caller(), lease_id, changes, None, dry_run=False)
        flash(f"{lease.name[:80]} was {done}.", "good")
    except NotFound:
        raise
    except ClimateError as error:
        flash(f"Nothing was changed: {error}"[:400], "error")
    return redirect(HOME if request.form.get("next") == HOME else f"{LIST}/{lease_id}", 303)


@page("GET", "/leases/<lease_id>/delete", "leases:delete")
def ask_delete(lease_id: str) -> ResponseReturnValue:
    """Ask whether a lease is to be deleted, and say what is deleted with it."""
    lease = leases.get(climate(), caller(), _id(lease_id))
    hosts = host_visibility.listed(climate(), caller(), lease.id)
    servers = [server for host in hosts for server in host.servers or ()]
    return render_template("lease_delete.html", lease=lease, servers=servers)


@page("POST", "/leases/<lease_id>/delete", "leases:delete")
def delete(lease_id: str) -> ResponseReturnValue:
    """Delete a lease."""
    known = _id(lease_id)
    name = leases.get(climate(), caller(), known).name
    leases.delete(climate(), caller(), known)
    flash(f"{name[:80]} is deleted, or will be once its servers have ended.", "good")
    return redirect(LIST, 303)


@page("GET", "/leases/<lease_id>/lease.ics", "leases:get", answers=(ics.MEDIA_TYPE, "*/*"))
def calendar(lease_id: str) -> ResponseReturnValue:
    """Return a lease for a calendar program."""
    lease = leases.get(climate(), caller(), _id(lease_id))
    return Response(ics.calendar(lease.name, [_entry(lease)]), content_type=f"{ics.MEDIA_TYPE}; charset=utf-8")


def _entry(lease: Lease) -> Entry:
    return Entry(
        lease.id,
        lease.name,
        lease.period,
        str(lease.status),
        lease.version,
        lease.created_at,
        lease.updated_at,
        lease.deleting,
        [lease_words.resources(reservation) for reservation in lease.reservations],
    )


def _id(text: str) -> UUID:
    lease_id = path_id(text, f"There is no lease {text[:80]!r}.")
    bind_contextvars(lease_id=str(lease_id))
    return lease_id
