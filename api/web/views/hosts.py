"""Pools of hosts for administrators: the board, moves with their preview, and single hosts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api.request_context import caller, climate, identity
from api.reservation.ids import path_id
from api.web import form_fields, lease_words, rendering
from api.web.blueprint import PREFIX, page
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.hosts.pools import Pool
from climate.identity.models import AccountNames
from climate.service.host_operations import failures, maintenance, pool_moves, pools
from climate.service.host_operations.pool_moves import ADMIN_TARGETS, LONGEST_REASON, Moved
from climate.service.host_operations.pools import Page, PoolStatus, Resident
from climate.service.hosts import inventory, reservable, timeline
from climate.service.hosts.move_checks import RequestedMove
from climate.service.hosts.timeline import TimelineWindow
from climate.store.hosts.maintenance import WindowFilter
from climate.store.journal import fact_codec
from climate.store.journal.journal import Entry

BOARD = f"{PREFIX}/hosts"
CARDS = 40
"""Hosts of a pool on the board; the others are on the page of the pool."""
PAGE_ROWS = 100
MOST_HISTORY = 100
UNTOLD = frozenset({"at", "host", "token"})
"""Fields of facts about hosts that the page of a host shows in another place, or not at all."""
EXPLAINED = {
    Pool.MULTI_TENANT: "For everybody's servers.",
    Pool.RESERVATION: "Kept for leases.",
    Pool.LENT: "In a lease now.",
    Pool.RECYCLING: "The lease is over; servers still run.",
    Pool.DRAINING: "To be kept for leases, once the servers are gone.",
    Pool.CLEANING: "Being cleaned after a lease.",
    Pool.MAINTENANCE: "Worked on.",
    Pool.FAILED: "Out of use.",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A pool on the board with its first hosts."""

    pool: Pool
    status: PoolStatus
    residents: Sequence[Resident]
    explained: str

    @property
    def hidden(self) -> int:
        """Return the number of registered hosts that are not among the first ones."""
        return max(0, self.status.count.hosts - len(self.residents))


@page("GET", "/hosts", "pools:get")
def board() -> ResponseReturnValue:
    """Show the pools with their hosts."""
    engine, own = climate(), caller()
    columns = [
        Column(one.pool, one, pools.hosts_of(engine, own, one.pool, Page(None, CARDS)), EXPLAINED[one.pool])
        for one in pools.listed(engine, own)
    ]
    names = _projects(resident for column in columns for resident in column.residents)
    return render_template("pools.html", columns=columns, targets=ADMIN_TARGETS, names=names)


@page("GET", "/hosts/pools/<name>", "pools:get")
def pool(name: str) -> ResponseReturnValue:
    """List the hosts of one pool, a page at a time."""
    known, own = pools.named(name), caller()
    marker = form_fields.marker(request.args, "after")
    residents = pools.hosts_of(climate(), own, known, Page(marker, PAGE_ROWS + 1))
    return render_template(
        "pool.html",
        status=pools.get(climate(), own, known),
        residents=residents[:PAGE_ROWS],
        following=residents[PAGE_ROWS - 1].place.host if len(residents) > PAGE_ROWS else None,
        explained=EXPLAINED[known],
        targets=ADMIN_TARGETS,
        names=_projects(residents),
    )


def _projects(residents: Iterable[Resident]) -> AccountNames:
    """Return the names of the projects whose leases have, or had, these hosts."""
    return identity().names((), {resident.lease[1] for resident in residents if resident.lease})


@page("POST", "/hosts/preview", "pools:put")
def preview() -> ResponseReturnValue:
    """Show what a move of hosts would do to leases; nothing is moved."""
    order = _order(force=True)
    try:
        moved = pool_moves.move(climate(), caller(), order, dry_run=True)
    except ClimateError as refusal:
        return _refused(order, refusal)
    names = identity().names((), {str(one.project_id) for host in moved for one in host.lost})
    return render_template("move.html", order=order, moved=moved, lost=_lost(moved), refusal="", names=names)


def _refused(order: RequestedMove, refusal: ClimateError) -> ResponseReturnValue:
    page = render_template("move.html", order=order, moved=(), lost=0, refusal=str(refusal), names=AccountNames())
    return page, 409


@page("POST", "/hosts/move", "pools:put")
def move() -> ResponseReturnValue:
    """Move hosts to a pool, all of them or none."""
    order = _order(force=request.form.get("force") == "1")
    try:
        moved = pool_moves.move(climate(), caller(), order)
    except ClimateError as refusal:
        return _refused(order, refusal)
    names = ", ".join(one.after.name for one in moved)
    flash(f"Moved to {order.to}: {names}." if moved else f"All of the hosts are in {order.to} already.", "good")
    return redirect(BOARD, 303)


def _order(*, force: bool) -> RequestedMove:
    hosts = [name[:255] for name in request.form.getlist("hosts") if name]
    if not hosts:
        raise InvalidInput("No host was chosen: tick at least one host, and choose the pool again")
    to = request.form.get("to", "")
    if to not in [str(one) for one in ADMIN_TARGETS]:
        raise InvalidInput(f"{to[:40]!r} is no pool into which hosts are moved by hand: {', '.join(ADMIN_TARGETS)} are")
    return RequestedMove(hosts, Pool(to), request.form.get("reason", "").strip()[:LONGEST_REASON], force)


def _lost(moved: Sequence[Moved]) -> int:
    return len({one.lease_id for host in moved for one in host.lost})


@page("GET", "/hosts/<host_id>", "oshosts:get")
def show(host_id: str) -> ResponseReturnValue:
    """Show a host: its pool, its calendar of two weeks, its maintenance windows and its journal."""
    engine, own = climate(), caller()
    host = inventory.get(engine, own, host_id)
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
    row = timeline.read(engine, own, TimelineWindow(start, start + timedelta(days=15), hosts=frozenset({str(host.id)})))
    try:
        health = failures.report(engine, own, host_id)
    except ClimateError:  # the cloud does not answer
        health = None
    there = pools.resident(engine, own, host.id)
    history = [_history_entry(entry) for entry in reversed(reservable.history(engine, own, host_id)[-MOST_HISTORY:])]
    return render_template(
        "host.html",
        host=host,
        health=health,
        resident=there,
        row=row.rows[0] if row.rows else None,
        windows=maintenance.listed(engine, own, WindowFilter(host=host.id)),
        history=history,
        names=identity().names({one.author for one in history}, _owners(there, health)),
        targets=ADMIN_TARGETS,
    )


def _owners(there: Resident, health: failures.Report | None) -> set[str]:
    """Return the ids of the projects of the leases and servers of a host."""
    owners = {str(promise.project_id) for promise in there.promises} | {
        one.project_id for one in (health.servers if health else ())
    }
    return owners | ({there.lease[1]} if there.lease else set())


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An entry of the journal of a host, in words."""

    at: datetime
    kind: str
    author: str
    words: str


def _history_entry(entry: Entry) -> HistoryEntry:
    """Return an entry with the fields of its fact that say something to people."""
    fields: Mapping[str, object] = fact_codec.encode(entry.fact)
    known = {name: value for name, value in fields.items() if value not in ("", None, {}, 0) and name not in UNTOLD}
    words = ", ".join(f"{name.replace('_', ' ')} {rendering.value(value)}" for name, value in known.items())
    author = str(entry.actor.get("user_id") or "climate")
    return HistoryEntry(entry.fact.at, lease_words.happening_title(type(entry.fact).__name__), author, words)


@page("POST", "/hosts/<host_id>/fail", "oshosts:fail")
def fail(host_id: str) -> ResponseReturnValue:
    """Declare a host failed; its leases get other hosts."""
    return _done(host_id, lambda: failures.fail(climate(), caller(), host_id, _reason()), "The host is declared failed")


@page("POST", "/hosts/<host_id>/heal", "oshosts:heal")
def heal(host_id: str) -> ResponseReturnValue:
    """Declare a failed host healthy."""
    return _done(host_id, lambda: failures.heal(climate(), caller(), host_id), "The host is declared healthy")


@page("POST", "/hosts/<host_id>/reservable", "oshosts:put")
def open_host(host_id: str) -> ResponseReturnValue:
    """Open or close a host for new leases."""
    opens = request.form.get("reservable") == "1"
    said = "The host is open to new leases" if opens else "The host gets no new leases"
    change = (opens, request.form.get("reason", "").strip()[:LONGEST_REASON])
    return _done(host_id, lambda: reservable.open_to_promises(climate(), caller(), host_id, *change), said)


@page("POST", "/hosts/<host_id>/maintenance", "maintenances:post")
def plan_maintenance(host_id: str) -> ResponseReturnValue:
    """Plan a maintenance window, or with `preview` say which leases it hits."""
    given = request.form
    start, end = (form_fields.moment(given, name) for name in ("start", "end"))
    order = maintenance.WindowRequest(host_id, start, end, _reason(), force=given.get("force") == "1")
    is_trial = given.get("preview") == "1"
    said = "The window would fit" if is_trial else "The maintenance window is planned"
    return _done(host_id, lambda: maintenance.plan(climate(), caller(), order, dry_run=is_trial), said)


@page("POST", "/hosts/<host_id>/maintenance/<window_id>/end", "maintenances:delete")
def end_maintenance(host_id: str, window_id: str) -> ResponseReturnValue:
    """End a maintenance window, or cancel one that has not begun; its host returns."""
    known = path_id(window_id, f"There is no maintenance window {window_id[:80]}")
    return _done(host_id, lambda: maintenance.end(climate(), caller(), known), "The maintenance window is over")


def _reason() -> str:
    return request.form.get("reason", "").strip()


def _done(host_id: str, act: Callable[[], object], said: str) -> ResponseReturnValue:
    """Carry out an action, and return to the page of the host with what came of it."""
    try:
        act()
    except ClimateError as refusal:
        flash(str(refusal), "error")
    else:
        flash(f"{said}.", "good")
    return redirect(f"{BOARD}/{host_id}", 303)
