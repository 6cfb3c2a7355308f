"""Power of hosts: settings and state, power on and off by hand, and a report of savings."""

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import date, maybe, stamp
from api.reservation.hosts.power_schema import (
    Clearing,
    PowerAnswer,
    PowerOrder,
    PowersAnswer,
    ReportAnswer,
    ReportQuery,
    SwitchingOff,
    SwitchingOn,
)
from api.reservation.leases.request_options import DryRun
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.service.power import power
from climate.service.power.power import HoursOff, ManualRequest, Powered, Wiring

blueprint = Blueprint("power", __name__, url_prefix=PREFIX, description="Hosts with power settings.")


@serve(blueprint, "GET", "/power", Operation("power:get", {200: PowersAnswer}, query=pages.Paged))
def list_power(query: Read) -> ResponseReturnValue:
    """List the hosts with power settings."""
    part = pages.requested()
    return pages.listing("power", power.listed(climate(), caller(), part.marker, part.fetch), part, _body)


@serve(blueprint, "GET", "/power/report", Operation("power:get", {200: ReportAnswer}, query=ReportQuery))
def report_power(query: Read) -> ResponseReturnValue:
    """Report for how long hosts were off; the default period is the last 30 days."""
    return {"report": _report(power.report(climate(), caller(), query.get("start"), query.get("end")))}


@serve(blueprint, "GET", "/os-hosts/<host_id>/power", Operation("power:get", {200: PowerAnswer}, refuses=(404,)))
def show_power(host_id: str, query: Read) -> ResponseReturnValue:
    """Show the power settings and state of a host."""
    return _power_now(host_id)


def _power_now(host_id: str) -> Read:
    return {"power": _body(power.get(climate(), caller(), host_id))}


@serve(
    blueprint,
    "PUT",
    "/os-hosts/<host_id>/power",
    Operation(
        "power:put",
        {200: PowerAnswer},
        query=DryRun,
        body=PowerOrder,
        refuses=(404,),
        example={"driver": "memory", "settings": {"boot_seconds": 30}, "watts": 150},
        shows=_power_now,
    ),
)
def set_power(host_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Replace the power settings of a host, passwords included."""
    wiring = Wiring(body["driver"], body["settings"], body["watts"])
    return {"power": _body(power.put(climate(), caller(), host_id, wiring, dry_run=query["dry_run"]))}


@serve(
    blueprint,
    "DELETE",
    "/os-hosts/<host_id>/power",
    Operation("power:delete", {204: None}, query=Clearing, refuses=(404, 409)),
)
def clear_power(host_id: str, query: Read) -> ResponseReturnValue:
    """Delete the power settings of a host."""
    power.clear(climate(), caller(), host_id, force=query["force"], dry_run=query["dry_run"])
    return nothing()


@serve(
    blueprint,
    "POST",
    "/os-hosts/<host_id>/power/on",
    Operation("power:switch", {200: PowerAnswer}, query=SwitchingOn, refuses=(404, 409)),
)
def switch_on(host_id: str, query: Read) -> ResponseReturnValue:
    """Request power on of a host; the host is on some time later."""
    return _switched(host_id, ManualRequest(True, force=query["force"]), query)


@serve(
    blueprint,
    "POST",
    "/os-hosts/<host_id>/power/off",
    Operation("power:switch", {200: PowerAnswer}, query=SwitchingOff, refuses=(404, 409)),
)
def switch_off(host_id: str, query: Read) -> ResponseReturnValue:
    """Request power off of a host; the host is off some time later."""
    return _switched(host_id, ManualRequest(False, query["hard"], query["force"]), query)


def _switched(host_id: str, request: ManualRequest, query: Read) -> ResponseReturnValue:
    return {"power": _body(power.switch(climate(), caller(), host_id, request, dry_run=query["dry_run"]))}


def _body(power: Powered) -> dict[str, object]:
    place, supply = power.place, power.supply
    return {
        "id": str(place.host),
        "name": place.name,
        "pool": place.pool,
        "driver": supply.driver,
        "settings": dict(supply.settings),
        "secrets": list(power.secrets),
        "watts": supply.watts,
        "on": place.on,
        "wanted": supply.wanted,
        "wanted_at": maybe(date, supply.wanted_at),
        "state": supply.state,
        "seen_at": maybe(date, supply.seen_at),
        "changed_at": maybe(date, supply.changed_at),
        "failures": supply.failures,
        "error": supply.error,
        "created_at": stamp(supply.created_at),
        "updated_at": maybe(stamp, supply.updated_at),
    }


def _report(saved: HoursOff) -> dict[str, object]:
    report = saved.report
    hosts = [
        {"id": str(host), "name": saved.names[host], "hours_off": round(hours, 3)}
        for host, hours in sorted(report.hours.items())
    ]
    return {
        "from": date(saved.start),
        "to": date(saved.end),
        "hours_off": round(report.total, 3),
        "kwh": None if report.kwh is None else round(report.kwh, 3),
        "hosts": hosts,
    }
