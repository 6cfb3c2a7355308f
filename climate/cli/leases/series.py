"""climate series: leases that repeat by a rule."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.dates import SpanType
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.availability import Occurrence, Series

PATH = "/series"
COLUMNS = ("id", "name", "rule", "zone", "leases", "start_date")
OCCURRENCE_COLUMNS = ("name", "start_date", "end_date", "status")
CLASH_COLUMNS = (*OCCURRENCE_COLUMNS, "reason", "instead")
IANA = re.compile(r":?([A-Za-z_+-]+(?:/[A-Za-z0-9_+-]+)*)")


class RepeatOptions(TypedDict):
    """Options of a lease that make a series of it, or exclude one."""

    repeat: str | None
    timezone: str | None
    fitting: bool
    hold: timedelta | None
    wait: bool
    wait_list: bool


@click.group("series")
def group() -> None:
    """Series: leases that repeat by a rule; `climate lease create --repeat` creates them."""


def repeat(environ: Mapping[str, str], options: RepeatOptions) -> dict[str, object]:
    """Return the recurrence for the body of a request; empty for a single lease."""
    if not options["repeat"]:
        if options["timezone"] or options["fitting"]:
            raise click.UsageError(f"--{'timezone' if options['timezone'] else 'fitting'} needs --repeat")
        return {}
    others = {"--wait": options["wait"], "--hold": options["hold"], "--wait-list": options["wait_list"]}
    for option, value in others.items():
        if value:
            raise click.UsageError(f"--repeat and {option} exclude each other")
    local = IANA.fullmatch(environ.get("TZ", ""))
    zone = options["timezone"] or (local[1] if local else "UTC")
    return {"repeat": {"rule": options["repeat"], "zone": zone, "make": "fitting" if options["fitting"] else "all"}}


def show_series(session: Session, series: "Series") -> None:
    """Print a series: for people its occurrences, for programs as the service answered."""
    if session.form in ("json", "yaml"):
        session.show(series)
        return
    rows = [_row(one) for one in series["occurrences"]]
    clashes = any(row["reason"] for row in rows)
    if session.form == "table":
        session.say(f"series {series['name']} ({series['id']}): {series['rule']} in {series['zone']}")
    session.show_all(rows, CLASH_COLUMNS if clashes else OCCURRENCE_COLUMNS)


def _row(occurrence: "Occurrence") -> dict[str, object]:
    binding = occurrence["binding"]
    reason = f"{binding['name']}: {binding['message']}" if binding else occurrence["reason"]
    nearest = next(iter(occurrence["alternatives"]), None)
    return {
        "lease_id": occurrence["lease_id"],
        "name": occurrence["name"],
        "start_date": occurrence["start_date"],
        "end_date": occurrence["end_date"],
        "status": occurrence["status"] or "does not fit",
        "reason": reason,
        "instead": f"{nearest['message']}: {nearest['offer']['start_date'][:16]}Z" if nearest else None,
    }


@group.command("list")
@click.option("--name", help="Only series with this name.")
@listed
def list_(name: str | None) -> None:
    """List series."""
    session = current()
    query = {"name": name} if name else {}
    session.show_all(list(session.client.pages("reservation", PATH, "series", query)), COLUMNS)


@group.command("show")
@click.argument("series")
@listed
def show(series: str) -> None:
    """Show a series with its occurrences."""
    session = current()
    found: Series = session.client.json("reservation", "GET", _path(session, series))["series"]
    show_series(session, found)


def _path(session: Session, series: str) -> str:
    return f"{PATH}/{lookup.part(lookup.series_id(session.client, series))}"


def _from(session: Session, lease: str | None) -> dict[str, str]:
    return {"from": lookup.lease_id(session.client, lease)} if lease else {}


FROM_HELP = "Only occurrences from this lease on."


def _put(series: str, body: Mapping[str, object], since: str | None, dry_: bool) -> None:
    session = current()
    sent = {**body, **_from(session, since)}
    path = _path(session, series)
    changed: Series = session.client.json("reservation", "PUT", path, json=sent, params=dry(dry_))["series"]
    show_series(session, changed)


@group.command("set")
@click.argument("series")
@click.option("--name", help="New name of the series and of its leases.")
@click.option("--later", type=SpanType(), help="Move each occurrence to a later local time, like 1h or 1d.")
@click.option("--earlier", type=SpanType(), help="Move each occurrence to an earlier local time.")
@click.option("--from", "since", metavar="LEASE", help=FROM_HELP)
@dry_run
@listed
def set_(
    series: str,
    name: str | None,
    later: timedelta | None,
    earlier: timedelta | None,
    since: str | None,
    dry_run: bool,
) -> None:
    """Rename or move the occurrences that have not begun: all of them, or none."""
    if later and earlier:
        raise click.UsageError("--later and --earlier exclude each other")
    body: dict[str, object] = {"name": name} if name is not None else {}
    if later or earlier:
        body["move_by"] = int((later or -(earlier or timedelta())).total_seconds())
    if not body:
        raise click.UsageError("nothing to change was given")
    _put(series, body, since, dry_run)


@group.command("extend")
@click.argument("series")
@click.argument("length", type=SpanType())
@click.option("--from", "since", metavar="LEASE", help=FROM_HELP)
@dry_run
@listed
def extend(series: str, length: timedelta, since: str | None, dry_run: bool) -> None:
    """Extend each occurrence that has not begun by LENGTH."""
    _put(series, {"extend_by": int(length.total_seconds())}, since, dry_run)


@group.command("shorten")
@click.argument("series")
@click.argument("length", type=SpanType())
@click.option("--from", "since", metavar="LEASE", help=FROM_HELP)
@dry_run
@listed
def shorten(series: str, length: timedelta, since: str | None, dry_run: bool) -> None:
    """Shorten each occurrence that has not begun by LENGTH."""
    _put(series, {"extend_by": -int(length.total_seconds())}, since, dry_run)


@group.command("delete")
@click.argument("series")
@click.option("--from", "since", metavar="LEASE", help=FROM_HELP)
@dry_run
@output_options
def delete(series: str, since: str | None, dry_run: bool) -> None:
    """Delete a series with the occurrences that have not begun; those that have begun go on."""
    session = current()
    query = {**_from(session, since), **dry(dry_run)}
    session.client.json("reservation", "DELETE", _path(session, series), params=query)
