"""Sub-leases of a lease: a form that gives hosts of it to another project for a part of its time."""

import re
from uuid import UUID

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api import errors
from api.request_context import caller, climate, identity
from api.reservation.ids import path_id
from api.web import form_fields, sessions
from api.web.blueprint import PREFIX, page
from climate.domain.errors import ClimateError, Forbidden, InvalidInput, NotFound
from climate.domain.lease import Lease
from climate.domain.sharing.sharing import ACCOUNT_ID, Access, refusal
from climate.service.leases import host_visibility, leases
from climate.service.sharing import access
from climate.service.subleases import create
from climate.service.subleases.create import SubleaseOrder

MOST_HOSTS = 1000
NO_ID = "{name} is {given!r}: the id of a {noun} is expected"


@page("GET", "/leases/<lease_id>/subleases", "leases:post")
def ask(lease_id: str) -> ResponseReturnValue:
    """Show the form of a sub-lease alone, as after a refusal."""
    return _form(_parent(lease_id))


@page("POST", "/leases/<lease_id>/subleases", "leases:post")
def sublet(lease_id: str) -> ResponseReturnValue:
    """Create a sub-lease, and return to the page of the parent; a refusal is shown above the filled form."""
    parent = _parent(lease_id)
    try:
        made = create.create(climate(), caller(), parent.id, _order(request.form))
    except (NotFound, Forbidden):
        raise
    except ClimateError as error:
        return _form(parent, str(error)), errors.problem_of(error).status
    hosts = sum(len(reservation.holds) for reservation in made.reservations)
    flash(f"{made.name[:80]} gets {hosts} host{'' if hosts == 1 else 's'} of this lease.", "good")
    return redirect(f"{PREFIX}/leases/{parent.id}", 303)


def _form(parent: Lease, problem: str = "") -> str:
    given = request.form
    return render_template(
        "sublease.html",
        lease=parent,
        given=given,
        problem=problem,
        hosts=host_visibility.listed(climate(), caller(), parent.id),
        chosen=given.getlist("host"),
    )


def _order(form: form_fields.Form) -> SubleaseOrder:
    """Return the form as a request. Raise InvalidInput for a field that is missing or wrong."""
    name, end = form_fields.text(form, "name"), form_fields.moment(form, "end")
    if not name:
        raise InvalidInput("name is missing: a text such as course is expected")
    if end is None:
        raise InvalidInput("end is missing: a time such as 2030-01-31T18:00 is expected")
    names = tuple(dict.fromkeys(name for name in form.getlist("host") if name))
    return SubleaseOrder(
        name=name,
        project_id=_project(form),
        end=end,
        start=form_fields.moment(form, "start"),
        user_id=_account(form, "user"),
        hosts=_number(form, names),
        host_names=names,
        reservation_id=_reservation(form.get("reservation", "")),
    )


def _project(form: form_fields.Form) -> str:
    """Return the id of the project, which a member may also give by the name of an own project."""
    given = form_fields.text(form, "project")
    if not given:
        raise InvalidInput("project is missing: the id of the project that gets the hosts is expected")
    own = {one.name: one.id for one in sessions.projects()}
    _, known = identity().account_ids("", given) if caller().is_admin else (None, own.get(given))
    return known or _account(form, "project")


def _account(form: form_fields.Form, name: str) -> str:
    given = form_fields.text(form, name)
    if given and not re.fullmatch(ACCOUNT_ID, given):
        raise InvalidInput(NO_ID.format(name=name, given=given[:64], noun=name))
    return given


def _number(form: form_fields.Form, names: tuple[str, ...]) -> int:
    """Return the number of hosts; 0 where hosts are named."""
    count = form_fields.number(form, "hosts", 0, 1, MOST_HOSTS)
    if not count and not names:
        raise InvalidInput(f"hosts is missing: a number from 1 to {MOST_HOSTS} is expected, or hosts that are ticked")
    if names and count not in (0, len(names)):
        raise InvalidInput(f"hosts is {count}, but {len(names)} are ticked: leave the number empty, or tick none")
    return 0 if names else count


def _reservation(text: str) -> UUID | None:
    try:
        return path_id(text, "") if text else None
    except NotFound:
        raise InvalidInput(f"reservation is {text[:40]!r}: the id of a reservation of this lease is expected") from None


def _parent(text: str) -> Lease:
    """Return the lease, if its hosts are the caller's to give. Raise NotFound or Forbidden."""
    lease_id = path_id(text, f"There is no lease {text[:80]!r}.")
    bind_contextvars(lease_id=str(lease_id))
    lease = leases.get(climate(), caller(), lease_id)
    if (relation := access.relation(caller(), lease)) is not Access.OWNER:
        raise refusal(relation)
    return lease
