"""Host pools: hosts by pool, allocations, pool settings, and moves by administrators."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import date, maybe
from api.reservation.leases.lease_view import entry_body
from api.reservation.leases.request_options import DryRun
from api.reservation.leases.schema import LeaseAt
from api.reservation.pools.schema import (
    BacklogAnswer,
    BacklogQuery,
    HostHistoryAnswer,
    MoveOrder,
    MovesAnswer,
    Opening,
    PlaceAnswer,
    PlanAnswer,
    PoolAnswer,
    PoolsAnswer,
    PoolTerms,
    ResidentQuery,
    ResidentsAnswer,
)
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.cloud import CloudServer
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.hosts.pool_scaling import Move
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations import pool_moves, pool_scaling, pools
from climate.service.host_operations.pool_moves import Moved
from climate.service.host_operations.pool_scaling import Explained
from climate.service.host_operations.pools import Page, Plan, PoolStatus, Resident
from climate.service.hosts import reservable, unregistered_hosts
from climate.service.hosts.inventory import marker_number
from climate.service.hosts.move_checks import RequestedMove
from climate.service.hosts.unregistered_hosts import UnregisteredHost
from climate.store.hosts.pools import Promise

blueprint = Blueprint("pools", __name__, url_prefix=PREFIX, description="Host pools.")


@serve(blueprint, "GET", "/pools", Operation("pools:get", {200: PoolsAnswer}))
def list_pools(query: Read) -> ResponseReturnValue:
    """List the pools with the number of their hosts, and of those that are allocated."""
    return {"pools": [_pool_body(one) for one in pools.listed(climate(), caller())]}


@serve(blueprint, "GET", "/pools/<pool_name>", Operation("pools:get", {200: PoolAnswer}, query=LeaseAt, refuses=(404,)))
def show_pool(pool_name: str, query: Read) -> ResponseReturnValue:
    """Show a pool; with `at`, its settings at that time and its present figures."""
    return _pool_at(pool_name, query.get("at"))


def _pool_at(pool_name: str, at: datetime | None = None) -> Read:
    return {"pool": _pool_body(pools.get(climate(), caller(), pools.named(pool_name), at))}


@serve(blueprint, "GET", "/pools/<pool_name>/history", Operation("pools:get", {200: HostHistoryAnswer}, refuses=(404,)))
def pool_history(pool_name: str, query: Read) -> ResponseReturnValue:
    """List the changes of a pool's settings with their authors."""
    return {"history": [entry_body(entry) for entry in pools.history(climate(), caller(), pools.named(pool_name))]}


@serve(
    blueprint,
    "PUT",
    "/pools/<pool_name>",
    Operation(
        "pools:put",
        {200: PoolAnswer},
        query=DryRun,
        body=PoolTerms,
        refuses=(404,),
        example={"target": 20, "on_end": "recycle", "grace_period": None},
        shows=_pool_at,
    ),
)
def change_pool(pool_name: str, query: Read, body: Read) -> ResponseReturnValue:
    """Set the target of the reservation pool, and the default end actions of leases.

    null restores the value of the settings.  Existing leases keep theirs.
    """
    changed = pools.change(climate(), caller(), pools.named(pool_name), body, dry_run=query["dry_run"])
    return {"pool": _pool_body(changed)}


@serve(
    blueprint,
    "GET",
    "/pools/<pool_name>/hosts",
    Operation("pools:get", {200: ResidentsAnswer}, query=ResidentQuery, refuses=(404,)),
)
def list_pool_hosts(pool_name: str, query: Read) -> ResponseReturnValue:
    """List the hosts of a pool with the time and reason of their move, and their next allocation.

    The first page of the multi-tenant pool also has the hosts that are not registered.
    """
    page, pool = pages.requested(), pools.named(pool_name)
    result = pools.hosts_of(climate(), caller(), pool, _page(page), servers=query.get("servers"))
    answer = pages.listing("hosts", result, page, _resident_body)
    if pool is Pool.MULTI_TENANT and page.marker is None:
        others = unregistered_hosts.list_unregistered(climate(), caller(), servers=query.get("servers", False))
        answer["unregistered"] = None if others is None else [_stranger_body(one) for one in others]
    return answer


@serve(
    blueprint,
    "GET",
    "/pools/<pool_name>/backlog",
    Operation("pools:get", {200: BacklogAnswer}, query=BacklogQuery, refuses=(404,)),
)
def pool_backlog(pool_name: str, query: Read) -> ResponseReturnValue:
    """List the allocations of a pool's hosts over time; the default period is one week from now."""
    page, pool = pages.requested(), pools.named(pool_name)
    between = (query.get("start"), query.get("end"))
    period, plans = pools.backlog(climate(), caller(), pool, between, _page(page))
    listing = pages.listing("backlog", plans, page, _plan_body)
    return {"from": date(period.start), "to": date(period.end), **listing}


@serve(blueprint, "GET", "/pools/<pool_name>/plan", Operation("pools:get", {200: PlanAnswer}, refuses=(404,)))
def pool_plan(pool_name: str, query: Read) -> ResponseReturnValue:
    """Explain the target size of the reservation pool, and the hosts that the next round adds and releases."""
    return {"plan": _filling_body(pool_scaling.explain(climate(), caller(), pools.named(pool_name)))}


@serve(
    blueprint,
    "POST",
    "/pools/<pool_name>/moves",
    Operation(
        "pools:put",
        {200: MovesAnswer},
        query=DryRun,
        body=MoveOrder,
        refuses=(404, 409),
        example={"hosts": ["7", "compute-9"], "reason": "rack 4 is for all", "from": "reservation"},
    ),
)
def move_hosts(pool_name: str, query: Read, body: Read) -> ResponseReturnValue:
    """Move hosts to a pool, all of them or none.

    A dry run is a preview: with `force` it shows the leases that would lose a host.
    """
    source = body["source"]
    order = RequestedMove(
        body["hosts"], _target(pool_name), body["reason"], body["force"], Pool(source) if source else None
    )
    done = pool_moves.move(climate(), caller(), order, dry_run=query["dry_run"])
    return {"moves": [_move_body(one) for one in done]}


@serve(
    blueprint,
    "PUT",
    "/os-hosts/<host_id>/reservable",
    Operation(
        "oshosts:put",
        {200: PlaceAnswer},
        query=DryRun,
        body=Opening,
        refuses=(404, 409),
        example={"reservable": False, "reason": "to be retired"},
    ),
)
def open_host(host_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Allow or refuse new allocations of a host; existing ones stay."""
    said = (body["reservable"], body["reason"])
    return {
        "host": _place_body(reservable.open_to_promises(climate(), caller(), host_id, *said, dry_run=query["dry_run"]))
    }


@serve(
    blueprint,
    "GET",
    "/os-hosts/<host_id>/history",
    Operation("oshosts:get", {200: HostHistoryAnswer}, refuses=(404,)),
)
def host_history(host_id: str, query: Read) -> ResponseReturnValue:
    """List the history of a host, also of one that is no longer registered."""
    return {"history": [entry_body(entry) for entry in reservable.history(climate(), caller(), host_id)]}


def _target(name: str) -> Pool:
    try:
        return pools.named(name)
    except NotFound as error:
        raise InvalidInput(str(error)) from None


def _page(page: pages.RequestedPage) -> Page:
    return Page(None if page.marker is None else marker_number(page.marker), page.fetch)


def _pool_body(one: PoolStatus) -> Read:
    terms = None
    if one.terms is not None:
        terms = {**asdict(one.terms), "own": sorted(one.own)}
    return {
        "name": one.pool,
        "hosts": one.hosts,
        "unregistered": one.unregistered,
        "reservable": one.count.reservable,
        "promised_now": one.count.promised_now,
        "promised_next_day": one.count.promised_soon,
        "drifted": one.count.drifted,
        "terms": terms,
    }


def _place_body(place: HostPlace) -> Read:
    return {
        "id": str(place.host),
        "name": place.name,
        "pool": place.pool,
        "since": date(place.since),
        "reason": place.reason,
        "until": maybe(date, place.until),
        "home": place.home,
        "reservable": place.reservable,
        "on": place.on,
        "reservation_id": _text(place.reservation_id),
        "version": place.version,
    }


def _resident_body(one: Resident) -> Read:
    return {
        **_place_body(one.place),
        "lease_id": str(one.lease[0]) if one.lease else None,
        "project_id": one.lease[1] if one.lease else None,
        "next": _promise_body(one.next) if one.next else None,
        "drift": one.drift,
        "server_count": one.server_count,
        "servers": _servers_body(one.servers),
        "deadline": date(one.ahead.deadline) if one.ahead else None,
        "at_deadline": one.ahead.policy if one.ahead else None,
    }


def _servers_body(servers: Sequence[CloudServer] | None) -> list[Read] | None:
    if servers is None:
        return None
    return [{"id": s.id, "name": s.name, "project_id": s.project_id, "status": s.status} for s in servers]


def _stranger_body(one: UnregisteredHost) -> Read:
    return {
        "name": one.host.name,
        "service_name": one.host.service_name,
        "vcpus": one.host.vcpus,
        "memory_mb": one.host.memory_mb,
        "local_gb": one.host.local_gb,
        "availability_zone": one.host.availability_zone,
        "server_count": one.host.servers,
        "servers": _servers_body(one.servers),
    }


def _plan_body(one: Plan) -> Read:
    return {"id": str(one.place.host), "name": one.place.name, "promises": [_promise_body(p) for p in one.promises]}


def _filling_body(one: Explained) -> Read:
    there, plan, peak = one.there, one.plan, one.there.peak
    return {
        "at": date(there.now),
        "until": date(there.now + one.rules.horizon),
        "managed": bool(one.rules.horizon),
        "hosts": there.size,
        "draining": len(there.draining),
        "promised": plan.promised,
        "promised_at": date(peak.at) if peak and peak.hosts else None,
        "spare": plan.beyond,
        "target": one.rules.target,
        "wanted": plan.wanted,
        "most": plan.most,
        "lacking": plan.lacking,
        "moves": [_step_body(one, move) for move in plan.moves],
        "kept": [_step_body(one, move) for move in plan.kept],
        "backlog": [{"at": date(level.at), "hosts": level.hosts} for level in there.backlog],
    }


def _step_body(one: Explained, move: Move) -> Read:
    place = one.places[move.host]
    return {"id": str(move.host), "name": place.name, "pool": place.pool, "step": move.step, "reason": move.reason}


def _promise_body(one: Promise) -> Read:
    return {
        "kind": one.kind,
        "state": one.state,
        "start": date(one.during.start),
        "end": maybe(date, one.end),
        "slots": one.slots,
        "lease_id": _text(one.lease_id),
        "lease_name": one.lease_name,
        "project_id": one.project_id,
        "reservation_id": _text(one.reservation_id),
        "start_date": maybe(date, one.start_date),
        "end_date": maybe(date, one.end_date),
        "maintenance_id": _text(one.window_id),
        "reason": one.reason,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _move_body(one: Moved) -> Read:
    return {
        "host": _place_body(one.after),
        "moved": one.after.pool is not one.before.pool,
        "from": one.before.pool,
        "leases": [_promise_body(promise) for promise in one.lost],
    }
