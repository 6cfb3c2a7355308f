"""Servers: list, boot with the hint of a lease, one server with its console log, and the scheduler's explanation."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api.compute import validation
from api.compute.servers import request_body
from api.compute.servers import servers as routes
from api.compute.servers.admin import scheduler_decisions
from api.request_context import caller, climate, compute, deployment
from api.web import form_fields, lease_words
from api.web.blueprint import PREFIX, page
from climate.compute import server_operations
from climate.compute.errors import ComputeError
from climate.compute.images import image_catalog
from climate.compute.models.server import ACTIVE, BUILD, ERROR, RESERVED, SHUTOFF, START, STATUSES, STOP, Server
from climate.compute.network.operations import networks
from climate.compute.projects import flavors, keypairs
from climate.compute.store.projects.images import ImageQuery
from climate.compute.store.servers.lists import Listing
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.lease import Lease
from climate.domain.sharing.sharing import may_boot
from climate.domain.status import LeaseStatus
from climate.service.availability.question import present
from climate.service.leases import leases
from climate.store.leases.leases import Listing as Leases

LIST = f"{PREFIX}/servers"
ON_A_PAGE = 50
MOST_CHOICES = 200
CONSOLE_LINES = 200
WISHES = {"stop": STOP, "start": START}
STATES: Mapping[str, str] = {
    BUILD: "Being built.",
    RESERVED: "Asleep: it has its place, and starts with its lease.",
    ACTIVE: "Running.",
    SHUTOFF: "Stopped.",
    ERROR: "Failed: the reason is below.",
}


@page("GET", "/servers", "servers:get")
def list_all() -> ResponseReturnValue:
    """List the servers of the project, newest first, by pages."""
    if _elsewhere():
        return render_template("servers_elsewhere.html")
    name, status = form_fields.text(request.args, "name", 100), request.args.get("status", "")
    if status and status not in STATUSES:
        raise InvalidInput(f"status is {status[:20]!r}: expected is one of {', '.join(STATUSES)}")
    wanted = {"project_id": caller().project_id, **({"name": name} if name else {})}
    shown = {"shown_as": [status], "tasks": [], "hiding": []} if status else {}
    marker = request.args.get("marker") or None
    known = server_operations.listed(compute(), Listing({**wanted, **shown}, (), _marker(marker), ON_A_PAGE + 1))
    following = {"name": name, "status": status, "marker": known[ON_A_PAGE - 1].id} if len(known) > ON_A_PAGE else None
    return render_template(
        "servers.html", servers=known[:ON_A_PAGE], following=following, given=request.args, statuses=STATUSES
    )


@page("GET", "/servers/new", "servers:write")
def new() -> ResponseReturnValue:
    """Show the form of a new server."""
    if _elsewhere():
        return render_template("servers_elsewhere.html")
    return _form(request.args, "")


@page("POST", "/servers", "servers:write")
def boot() -> ResponseReturnValue:
    """Boot a server: at once, on a lease, or asleep until its own lease starts."""
    try:
        made = routes.boot(request_body.read(_body(request.form)))
    except (ClimateError, ComputeError) as error:
        return _form(request.form, str(error)), 400
    return redirect(f"{LIST}/{made.server_id}", 303)


def _form(given: Mapping[str, str], problem: str) -> str:
    project = caller().project_id
    choices = {
        "flavors": flavors.listed(compute(), project)[:MOST_CHOICES],
        "images": image_catalog.listed(
            compute(), ImageQuery(project, statuses=["active"], limit=MOST_CHOICES), project
        ),
        "networks": networks.of_servers(compute(), project)[:MOST_CHOICES],
        "keys": keypairs.listed(compute(), caller().user_id)[:MOST_CHOICES],
    }
    known = leases.listed(
        climate(),
        caller(),
        Leases(project_id=project if caller().is_admin else None, status=str(LeaseStatus.ACTIVE), limit=MOST_CHOICES),
    )
    known = [lease for lease in known if may_boot(lease.project_id, lease.sharing, caller())]
    return render_template(
        "server_new.html", given=given, problem=problem, reservations=_bootable(known), words=lease_words, **choices
    )


def _bootable(known: Sequence[Lease]) -> list[tuple[str, str]]:
    """Return the reservations on which servers can be booted, with the words for each."""
    kinds = ("physical:host", "flavor:instance")
    parts = (
        (lease, reservation)
        for lease in known
        for reservation in lease.reservations
        if reservation.resource_type in kinds
    )
    return [(str(one.id), f"{lease.name}: {lease_words.resources(one)}") for lease, one in parts]


def _body(form: form_fields.Form) -> dict[str, object]:
    """Return the form as a request of the API has it."""
    network, key, when = form.get("network", ""), form.get("key", ""), form.get("when", "now")
    server: dict[str, object] = {
        "name": form_fields.text(form, "name"),
        "flavorRef": form.get("flavor", ""),
        "imageRef": form.get("image", ""),
        **({"networks": [{"uuid": network}]} if network else {}),
        **({"key_name": key} if key else {}),
    }
    return {"server": server, **_hints(form, when)}


def _hints(form: form_fields.Form, when: str) -> dict[str, object]:
    reservation = form.get("reservation", "")
    if when == "lease":
        if not reservation:
            raise InvalidInput("reservation is missing: choose the lease on whose hosts the server is to run")
        return {"os:scheduler_hints": {"reservation": reservation}}
    if when == "asleep":
        times = {name: _date(form_fields.moment(form, name)) for name in ("start", "end")}
        if not all(times.values()):
            raise InvalidInput("start and end are needed for a server that sleeps until its lease starts")
        return {"os:scheduler_hints": {"reserved": "True", "lease_params": json.dumps(times)}}
    return {}


def _date(value: datetime | None) -> str:
    return "" if value is None else value.strftime("%Y-%m-%d %H:%M")


@page("GET", "/servers/<server_id>", "servers:get")
def show(server_id: str) -> ResponseReturnValue:
    """Show a server, its lease if it sleeps until that starts, and the end of its console log."""
    server = routes.find(server_id)
    lease = leases.of_resource(climate(), server.id) if server.status == RESERVED else None
    return render_template(
        "server.html",
        server=server,
        state=STATES.get(server.status, f"{server.status.capitalize()}."),
        lease=lease,
        now=present(climate()),
        console=_console(server),
        hint=_reservation(server),
    )


def _reservation(server: Server) -> str:
    hint = server.hints.get("reservation", "")
    return hint if isinstance(hint, str) else ""


def _console(server: Server) -> str | None:
    """Return the last lines of a console log; None if it cannot be read now."""
    if server.status in (RESERVED, BUILD):
        return ""
    try:
        return server_operations.console_output(compute(), routes.who(server.id), CONSOLE_LINES)
    except (ClimateError, ComputeError):
        return None


@page("POST", "/servers/<server_id>/power", "servers:write")
def power(server_id: str) -> ResponseReturnValue:
    """Stop or start a server."""
    wish = request.form.get("wish", "")
    if wish not in WISHES:
        raise InvalidInput(f"wish is {wish[:20]!r}: expected is stop or start")
    server = routes.find(server_id)
    server_operations.request_task(compute(), routes.who(server.id), WISHES[wish])
    flash(f"{server.name[:80]} is about to {wish}.", "good")
    return redirect(f"{LIST}/{server.id}", 303)


@page("GET", "/servers/<server_id>/delete", "servers:write")
def ask_delete(server_id: str) -> ResponseReturnValue:
    """Ask whether a server is to be deleted."""
    return render_template("server_delete.html", server=routes.find(server_id))


@page("POST", "/servers/<server_id>/delete", "servers:write")
def delete(server_id: str) -> ResponseReturnValue:
    """Delete a server."""
    server = routes.find(server_id)
    routes.delete(server.id)
    flash(f"{server.name[:80]} is being deleted.", "good")
    return redirect(LIST, 303)


@page("GET", "/servers/<server_id>/explain", "compute:admin")
def explain(server_id: str) -> ResponseReturnValue:
    """Draw why a server is where it is: filters with what each removed, and weights."""
    server = routes.find(server_id)
    known = scheduler_decisions.scheduling(server.id)["scheduling"]
    return render_template("explain.html", server=server, decisions=known["decisions"], width=_width)


def _width(number: float, most: float) -> float:
    """Return the length of a bar of a drawing, from 0 to 100."""
    return round(100 * max(0.0, min(1.0, number / most)), 1) if most else 0.0


def _elsewhere() -> bool:
    return deployment().settings.cloud != "bundled"


def _marker(text: str | None) -> str | None:
    return None if text is None else validation.uuid(text, "marker")
