"""Leases: create, list, show, update and delete."""

from typing import Any
from uuid import UUID

from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import NOW
from api.reservation.ids import marker_id, path_id
from api.reservation.leases import order_from_body, reservation_specs, series_view
from api.reservation.leases.lease_view import entry_body, host_body, lease_body
from api.reservation.leases.request_options import Confirmation, DryRun, IfMatch, Repeatable, key_of, tag
from api.reservation.leases.schema import (
    EXAMPLE,
    HistoryAnswer,
    LeaseAnswer,
    LeaseAt,
    LeaseChanges,
    LeaseHostsAnswer,
    LeaseOrder,
    LeaseQuery,
    LeasesAnswer,
)
from api.reservation.leases.series_schema import CreatedAnswer
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from api.reservation.zone_tree import over_the_tree
from climate.domain.errors import Forbidden, InvalidInput, UnreadableLease
from climate.domain.lease import Lease
from climate.domain.planning.waiting_list import Wait
from climate.service.availability import holds
from climate.service.availability.holds import Details
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases import host_visibility, leases
from climate.service.leases.update import Changes
from climate.service.series import create
from climate.service.waiting_list import entries, places
from climate.store.leases.leases import Listing

blueprint = Blueprint("leases", __name__, url_prefix=PREFIX, description="Leases of resources for a period.")


@serve(blueprint, "GET", "/leases", Operation("leases:get", {200: LeasesAnswer}, query=LeaseQuery))
def list_leases(query: Read) -> ResponseReturnValue:
    """List leases, oldest first.

    Administrators see those of all projects, others those of their own project and those that are shared with
    their project or with them; with their own `project_id` only the former.  A lease whose rows this release cannot
    read is left out, and named in the header Warning.
    """
    part = pages.requested()
    conditions = {name: value for name, value in query.items() if name not in ("limit", "marker")}
    own = caller()
    if not own.is_admin and query.get("project_id", own.project_id) != own.project_id:
        raise Forbidden("Only admins may list the leases of another project")
    result = leases.rows(climate(), own, Listing(**conditions, marker=marker_id(part.marker), limit=part.fetch))
    known = places.of(climate(), [one for one in result if isinstance(one, Lease)])
    rows = [(one.lease_id if isinstance(one, UnreadableLease) else one.id, one) for one in result]
    return pages.readable_listing("leases", rows, part, lambda number, lease: lease_body(lease, known.get(number)))


@serve(
    blueprint,
    "POST",
    "/leases",
    Operation(
        "leases:post",
        {201: CreatedAnswer, 200: CreatedAnswer},
        query=DryRun,
        headers=Repeatable,
        body=LeaseOrder,
        refuses=(404, 409, 422),
        example=EXAMPLE,
    ),
)
def create_lease(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Create a lease.

    All its reservations are allocated, or none.  With `hold_seconds` the lease is HELD until it is
    confirmed.  With `hold` it is made of a hold.  With `wait` it is put in the waiting list if it does not fit.
    With `repeat` a series is created as by `POST /series`: the answer has its first lease and the whole series.
    A dry run answers 200 instead of 201.
    """
    if body["hold"] is not None:
        return _create_of_hold(query, headers, body)
    if body["repeat"] is not None:
        return _create_series(query, headers, body)
    order = order_from_body.order(body)
    if body["wait"] is None:
        made = tree_leases.create(over_the_tree(), caller(), order, key_of(headers), dry_run=query["dry_run"])
    else:
        wait = Wait(body["wait"]["until"])
        made = entries.create(climate(), caller(), order, wait, key_of(headers), dry_run=query["dry_run"])
    bind_contextvars(lease_id=str(made.id))
    return {"lease": _body(made)}, 200 if query["dry_run"] else 201, tag(made.version)


def _create_of_hold(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    if query["dry_run"]:
        raise InvalidInput("dry_run cannot be used with hold: what is held is free for this lease")
    details = Details(body["name"], body["before_end_date"], order_from_body.events(body))
    made = holds.take(climate(), caller(), body["hold"], details, key_of(headers))
    bind_contextvars(lease_id=str(made.id))
    return {"lease": lease_body(made)}, 201, tag(made.version)


def _create_series(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Create a series as `POST /series` does, and answer with its first lease too."""
    wanted, is_dry = order_from_body.series(body), query["dry_run"]
    made = create.create(climate(), caller(), wanted, key_of(headers), dry_run=is_dry)
    bind_contextvars(series_id=str(made.series.id))
    first = next((occurrence.lease for occurrence in made.occurrences if occurrence.lease is not None), None)
    answer = {"lease": None if first is None else lease_body(first), "series": series_view.series(made)}
    return answer, 200 if is_dry else 201, {} if first is None else tag(first.version)


@serve(
    blueprint,
    "GET",
    "/leases/<lease_id>",
    Operation("leases:get", {200: LeaseAnswer}, query=LeaseAt, refuses=(404,)),
)
def show_lease(lease_id: str, query: Read) -> ResponseReturnValue:
    """Show a lease, as it is or as it was."""
    lease = leases.get(climate(), caller(), _id(lease_id), query.get("at"))
    return _shown(lease) if query.get("at") is None else ({"lease": lease_body(lease)}, 200, tag(lease.version))


def _lease_now(lease_id: str) -> Read:
    return {"lease": _body(leases.get(climate(), caller(), _id(lease_id)))}


@serve(
    blueprint,
    "PUT",
    "/leases/<lease_id>",
    Operation(
        "leases:put",
        {200: LeaseAnswer},
        query=DryRun,
        headers=IfMatch,
        body=LeaseChanges,
        refuses=(404, 409, 412),
        example={"end_date": "2030-01-31 18:00"},
        shows=_lease_now,
    ),
)
def change_lease(lease_id: str, query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Update a lease: its name, its dates, its reservations, its sharing.

    All changes are applied, or none.  Extenders of another project may move the end to a later time only.
    """
    known = _id(lease_id)
    wish = Changes(
        name=body.get("name"),
        start=_date(body, "start_date"),
        end=_date(body, "end_date"),
        start_now=body.get("start_date") == NOW,
        end_now=body.get("end_date") == NOW,
        before_end=body.get("before_end_date"),
        reservations=tuple(_changed_reservations(known, body.get("reservations", ()))),
        sharing=order_from_body.sharing(body["sharing"]) if "sharing" in body else None,
    )
    version = headers.get("version")
    return _shown(tree_leases.update(over_the_tree(), caller(), known, wish, version, dry_run=query["dry_run"]))


@serve(
    blueprint,
    "DELETE",
    "/leases/<lease_id>",
    Operation("leases:delete", {204: None}, query=DryRun, headers=IfMatch, refuses=(404, 409, 412)),
)
def delete_lease(lease_id: str, query: Read, headers: Read) -> ResponseReturnValue:
    """Delete a lease.

    A HELD lease is deleted at once.  A lease that has started is DELETING until its end has run.
    """
    leases.delete(climate(), caller(), _id(lease_id), headers.get("version"), dry_run=query["dry_run"])
    return nothing()


@serve(
    blueprint,
    "POST",
    "/leases/<lease_id>/confirm",
    Operation("leases:confirm", {200: LeaseAnswer}, headers=Confirmation, refuses=(404, 409)),
)
def confirm_lease(lease_id: str, query: Read, headers: Read) -> ResponseReturnValue:
    """Confirm a lease that is HELD.

    It becomes an ordinary lease, and starts at once if its start is past.  A second
    confirmation under the same key has the answer of the first; 409 once the hold has expired.
    """
    return _shown(tree_leases.confirm(over_the_tree(), caller(), _id(lease_id), headers["key"]))


@serve(blueprint, "GET", "/leases/<lease_id>/history", Operation("leases:get", {200: HistoryAnswer}, refuses=(404,)))
def lease_history(lease_id: str, query: Read) -> ResponseReturnValue:
    """List the history of a lease, also of a deleted one."""
    entries = leases.history(climate(), caller(), _id(lease_id))
    return {"history": [entry_body(entry, inventory=caller().is_admin) for entry in entries]}


@serve(blueprint, "GET", "/leases/<lease_id>/hosts", Operation("leases:get", {200: LeaseHostsAnswer}, refuses=(404,)))
def list_lease_hosts(lease_id: str, query: Read) -> ResponseReturnValue:
    """List the hosts of a lease with their public properties.

    CLIMATE_LEASE_HOSTS limits what owners see; administrators see all properties.
    """
    hosts = host_visibility.listed(climate(), caller(), _id(lease_id))
    return {"hosts": [host_body(host) for host in hosts]}


def _shown(lease: Lease) -> ResponseReturnValue:
    return {"lease": _body(lease)}, 200, tag(lease.version)


def _body(lease: Lease) -> Read:
    """Return a lease that is shown alone, with its place in the waiting list."""
    return lease_body(lease, places.estimated(climate(), lease), alone=True)


def _id(text: str) -> UUID:
    """Return the id of a lease in a path, and add it to the log lines of this request."""
    lease_id = path_id(text, f"Object with {{'lease_id': '{text[:80]}'}} not found")
    bind_contextvars(lease_id=str(lease_id))
    return lease_id


def _date(body: Read, name: str) -> Any:
    return None if body.get(name) == NOW else body.get(name)


def _changed_reservations(lease_id: UUID, given: Any) -> list[reservation_specs.Spec]:
    """Return the changed reservations; the stored lease says which plugin reads each change."""
    if not given:
        return []
    return reservation_specs.read_changes(climate().plugins, leases.get(climate(), caller(), lease_id), given)
