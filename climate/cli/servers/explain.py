"""climate server explain: the scheduler's decisions about a server."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.errors import Failure
from climate.cli.options import listed

if TYPE_CHECKING:
    from climate.cli.response_types.scheduler_decisions import (
        Candidate,
        FilterStage,
        NamedNode,
        SchedulerDecision,
        Scheduling,
        Trail,
        Weigher,
        ZoneOffer,
    )

COLUMNS = ("decision", "step", "what", "hosts", "says")
NAMED = ("destination", "force_hosts", "force_nodes", "ignore_hosts")

FOR_OWNERS = (
    "ask as an administrator (--os-cloud); its owner reads why a server was refused in the fault that "
    "`climate server show` tells"
)

Line = dict[str, object]


@click.command("explain")
@click.argument("server")
@listed
def command(server: str) -> None:
    """Explain step by step how the scheduler chose the node of a server (administrator)."""
    session = current()
    try:
        server_id = lookup.server(session.client, server, everywhere=True)["id"]
        scheduling: Scheduling = session.client.json("compute", "GET", f"/servers/{server_id}/scheduling")["scheduling"]
    except Failure as refused:
        raise replace(refused, hint=FOR_OWNERS) if refused.details.get("status") == 403 else refused from None
    if session.form in ("json", "yaml"):
        session.show(scheduling)
        return
    session.show_all(lines(scheduling["decisions"]), COLUMNS)
    if not scheduling["decisions"]:
        session.say("no scheduler decision of this server is stored")


def lines(decisions: "list[SchedulerDecision]") -> list[Line]:
    """Yield a line for each step of each decision, numbered from 1."""
    return [
        dict(zip(COLUMNS, (number, *step), strict=True))
        for number, decision in enumerate(decisions, 1)
        for step in _steps(decision)
    ]


Step = tuple[str, str, str, str]


def _steps(decision: "SchedulerDecision") -> Iterator[Step]:
    trail = decision["trail"]
    yield decision["kind"], decision["made_at"], "", _request_text(trail.get("asked", {}))
    if decision["after"]:
        yield "after", _node(decision["after"]), "", str(decision["after"].get("reason") or "")
    for reasons in decision["lost"]:
        yield "lost", "", "", "; ".join(reasons)
    if "hosts" in trail:
        yield "hosts", "", f"{trail['hosts']} -> {trail.get('considered', trail['hosts'])}", _named(trail["asked"])
    yield from _zones(trail)
    for stage in trail.get("filters", ()):
        yield from _filter(stage, "")
    for candidate in trail.get("weighed", ()):
        yield "weighed", _node(candidate), "", _weight(candidate, trail.get("weighers", ()))
    for stage in trail["later"]:
        yield from _filter(stage, f"for server {stage['server'] + 1} of the build")
    if trail["chosen"]:
        yield "chosen", _node(trail["chosen"]), "", _weight(trail["chosen"], trail.get("weighers", ()))
    if decision["error"] or trail.get("refused"):
        yield "refused", trail.get("refused") or "", "", decision["error"] or ""


def _zones(trail: "Trail") -> Iterator[Step]:
    """Yield the answer of each zone, and the child that has the server."""
    for zone in trail.get("zones", ()):
        yield "zone", _zone(zone), str(zone["offered"]), _answer(zone)
    if trail.get("zone"):
        yield "chosen", f"zone {trail['zone']['zone_id']}", "", ""


def _zone(zone: "ZoneOffer") -> str:
    return "this zone" if zone["zone_id"] is None else f"zone {zone['zone_id']} ({zone['name'] or 'n/a'})"


def _answer(zone: "ZoneOffer") -> str:
    """Return the reason why a zone offers nothing, or its best weight and its changes."""
    if zone["reason"]:
        return str(zone["reason"])
    if not zone["weights"]:
        return ""
    raw, weight = zone["weights"][0]
    return f"best {raw:.4g}; {zone['weight_offset']:g} + {zone['weight_scale']:g} x {raw:.4g} = {weight:.4g}"


def _filter(stage: "FilterStage", says: str) -> Iterator[Step]:
    yield "filter", stage["name"], f"{stage['start']} -> {stage['end']}", says
    for gone in stage["removed"]:
        yield "removed", _node(gone), "", gone["why"]
    more = stage["start"] - stage["end"] - len(stage["removed"])
    if more > 0:
        yield "removed", f"{more} more", "", ""


def _node(of: "NamedNode") -> str:
    return f"{of.get('node')} ({of.get('host')})"


def _request_text(asked: Mapping[str, object]) -> str:
    """Return the request; sizes in MB."""
    sizes = ("servers", "flavor", "vcpus", "ram_mb", "disk_mb", "zone", "group", "reservations")
    return _pairs({key: asked[key] for key in sizes if key in asked})


def _named(asked: Mapping[str, object]) -> str:
    return _pairs({key: asked[key] for key in NAMED if key in asked})


def _pairs(values: Mapping[str, object]) -> str:
    shown = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in values.items()}
    return " ".join(f"{key}={value}" for key, value in shown.items())


def _weight(candidate: "Candidate", weighers: "Iterable[Weigher]") -> str:
    """Return `RAMWeigher 7466 -> 1.0 x 1.0; total 1.0`: raw weight, normalised to 0…1, times its multiplier."""
    parts = [
        f"{weigher['name']} {raw:g} -> {normalised:.4g} x {weigher['multiplier']:g}; "
        for weigher, raw, normalised in zip(weighers, candidate["raw"], candidate["normalised"], strict=False)
    ]
    return f"{''.join(parts)}total {candidate['weight']:.4g}"


COMMANDS = (command,)
"""Commands of `climate server`."""
