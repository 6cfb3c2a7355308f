"""climate lease: reservations of resources for a period."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeGuard, Unpack
from uuid import uuid4

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, SpanType, end_of, moment, read, wire
from climate.cli.errors import NOT_ALLOWED, NOT_FOUND, Failure
from climate.cli.leases import lease_view, series, sharing_options
from climate.cli.leases.history_sentences import sentences
from climate.cli.leases.idempotency_times import RequestTimes
from climate.cli.leases.request_body import (
    CapacityOptions,
    ChangeOptions,
    capacity,
    new_reservations,
    reservation_change,
)
from climate.cli.options import (
    PairType,
    WaitOptions,
    dry,
    dry_run,
    exactly_one,
    listed,
    output_options,
    seconds,
    waited,
)
from climate.cli.wait import Goal, existing, wait

if TYPE_CHECKING:
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types.availability import CreatedSeries
    from climate.cli.response_types.leases import Lease, LeaseAnswer, LeaseEntry, LeaseHost

COLUMNS = ("id", "name", "status", "start_date", "end_date", "degraded", "waiting")
HOST_COLUMNS = ("name", "properties", "servers", "reservation_id")
SENTENCE_COLUMNS = ("at", "by", "happened")
HISTORY_COLUMNS = ("version", "at", "kind", "event", "outcome", "reason")
SETTLED = ("HELD", "PENDING", "ACTIVE", "TERMINATED", "ERROR")
AFTER = {"ACTIVE": ("TERMINATING", "TERMINATED", "DELETING")}
"""Events in the history that prove a status was reached."""


class ChangedOptions(WaitOptions):
    """Options of each command that changes a lease."""

    dry_run: bool


class CreateOptions(CapacityOptions, sharing_options.SharingOptions, series.RepeatOptions, ChangedOptions):
    """Options of `create`."""

    start: Moment
    end: Moment | None
    length: timedelta | None
    before_end: Moment | None
    event: tuple[tuple[str, str], ...]
    idempotency_key: str | None
    wait_until: Moment | None


class SetOptions(ChangeOptions, sharing_options.SharingChangeOptions, ChangedOptions):
    """Options of `set`."""

    name: str | None
    start: Moment | None
    end: Moment | None
    before_end: Moment | None
    reservation_id: str | None


@click.group("lease")
def group() -> None:
    """Leases: resources of a project for a period."""


@group.command("create")
@click.argument("name")
@click.option("--start", type=MomentType(), default="now", show_default=True, help="Start: now, +30m, or a time.")
@click.option("--end", type=MomentType(), help="End: +6h, or a time.")
@click.option("--for", "length", type=SpanType(), help="Length instead of the end: 90s, 6h, 1d12h.")
@click.option("--before-end", type=MomentType(), help="Time of before_end_lease.")
@click.option("--event", type=PairType(), multiple=True, metavar="TYPE=TIME", help="An additional event; repeatable.")
@click.option(
    "--idempotency-key", metavar="KEY", help="Idempotency key: a repetition with the same key creates no second lease."
)
@click.option("--repeat", metavar="RULE", help="Create a series by an RRULE: 'FREQ=WEEKLY;BYDAY=TU;COUNT=10'.")
@click.option("--timezone", help="Time zone of --repeat, like Europe/Berlin; default: TZ of the environment, or UTC.")
@click.option("--fitting", is_flag=True, help="With --repeat, create the leases that fit instead of all or none.")
@click.option(
    "--hold", type=SpanType(), help="Hold the lease for this time; it is deleted then unless it is confirmed."
)
@click.option("--wait-list", is_flag=True, help="If it does not fit, stand in line for the resources.")
@click.option("--wait-until", type=MomentType(), help="End of the wait, the start by default; later, the period moves.")
@sharing_options.sharing_options(new=True)
@capacity(new=True)
@waited
@dry_run
@output_options
def create(name: str, **given: Unpack[CreateOptions]) -> None:
    """Reserve hosts, capacity for servers, a server, floating IPs, or storage, for a period."""
    session = current()
    exactly_one(("--end", "--for"), given["end"], given["length"])
    if given["network"]:
        given["network"] = lookup.network_id(session.client, given["network"])
    key, now = given["idempotency_key"], session.client.now().replace(microsecond=0)
    times = RequestTimes.of(session.environ)
    scope = f"{session.client.cloud.source} {session.client.cloud.auth_url} {name} {key}"
    now = times.first(scope, now) if key and not given["dry_run"] else now
    body = _new_lease(session, name, given, now)
    headers = {"Idempotency-Key": key or str(uuid4())}
    repeat = series.repeat(session.environ, given)
    sent: Sent = {"json": body | repeat, "headers": headers, "params": dry(given["dry_run"])}
    try:
        answer = session.client.call("reservation", "POST", series.PATH if repeat else "/leases", **sent)
    except Failure as failure:
        if 400 <= failure.details.get("status", 0) < 500:
            times.forget(scope)
        raise
    if repeat:
        made: CreatedSeries = session.client.body(answer)
        series.show_series(session, made["series"])
        return
    lease: LeaseAnswer = session.client.body(answer)
    if given["wait"] and not given["dry_run"]:
        lease = {"lease": _wait(session, lease["lease"]["id"], "ACTIVE", seconds(given["timeout"]))}
    show_lease(session, _thing(lease))


def _new_lease(session: Session, name: str, options: CreateOptions, now: datetime) -> dict[str, object]:
    """Return the lease that the options describe, for the body of a request."""
    body: dict[str, object] = {
        "name": name,
        **_dates(options, now),
        "events": _events(options["event"], now),
        "reservations": new_reservations(options),
    }
    if not body["reservations"]:
        session.say("note: this lease reserves nothing; --hosts, --servers and others name what it should")
    if options["hold"]:
        if options["wait"]:
            raise click.UsageError("--wait and --hold exclude each other, because a held lease does not start")
        body["hold_seconds"] = int(options["hold"].total_seconds())
    return body | request_wait(options, now) | sharing_options.requested(options, options["repeat"])


def request_wait(options: CreateOptions, now: datetime) -> dict[str, object]:
    """Return the part of a request that puts a lease in the waiting list; nothing without the option."""
    until = options["wait_until"]
    if not options["wait_list"]:
        if until:
            raise click.UsageError("--wait-until needs --wait-list")
        return {}
    if options["hold"]:
        raise click.UsageError("--wait-list and --hold exclude each other, because a lease that waits holds nothing")
    return {"wait": {"until": wire(until.when(now))} if until else {}}


def _dates(options: CreateOptions, now: datetime) -> dict[str, str | None]:
    """Return the dates of a request; a start with a length is a time, so that the length is exact."""
    start = options["start"]
    end = end_of(start.when(now), options["end"], options["length"], now)
    before_end = options["before_end"]
    return {
        "start_date": "now" if start.is_now and options["end"] else wire(start.when(now)),
        "end_date": wire(end),
        "before_end_date": wire(before_end.when(now)) if before_end else None,
    }


def _events(given: Sequence[tuple[str, str]], now: datetime) -> list[dict[str, str]]:
    try:
        return [{"event_type": name, "event_date": wire(moment(time).when(now))} for name, time in given]
    except ValueError as wrong:
        raise click.UsageError(f"--event: {wrong}") from None


def _thing(answer: "LeaseAnswer") -> Mapping[str, object]:
    """Return the lease of an answer; a plan with further keys is returned whole."""
    return answer["lease"] if list(answer) == ["lease"] else answer


@group.command("confirm")
@click.argument("lease")
@click.option("--idempotency-key", metavar="KEY", default="", help="Idempotency key of the confirmation.")
@output_options
def confirm(lease: str, idempotency_key: str) -> None:
    """Confirm a lease that is HELD; `climate lease delete` releases it."""
    session = current()
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    path = f"/leases/{lookup.lease_id(session.client, lease)}/confirm"
    show_lease(session, _thing(session.client.json("reservation", "POST", path, headers=headers)))


@group.command("list")
@click.option("--status", help="Only leases in this status.")
@click.option("--name", help="Only leases with this name.")
@listed
def list_(status: str | None, name: str | None) -> None:
    """List leases."""
    session = current()
    query = {key: value for key, value in (("status", status), ("name", name)) if value}
    rows: list[Lease] = list(session.client.pages("reservation", "/leases", "leases", query))
    kept = [row for row in rows if all(row.get(key) == value for key, value in query.items())]
    plain = session.form in ("json", "yaml")
    session.show_all(kept if plain else [lease_view.list_row(row) for row in kept], COLUMNS)


@group.command("show")
@click.argument("lease")
@click.option("--at", type=MomentType(), help="Show the lease at this time, from the journal.")
@output_options
def show(lease: str, at: Moment | None) -> None:
    """Show a lease with its hosts and servers, or as it was at a time; other forms than table have the raw lease."""
    session = current()
    client = session.client
    if at is None:
        shown = lookup.lease(client, lease)
        if session.form == "table" and not session.columns:
            session.show(
                lease_view.fields(shown, hosts_of(session, shown), lease_view.addresses(session), client.now())
            )
        else:
            session.show(shown)
        return
    path = f"/leases/{lookup.lease_id(client, lease)}"
    answer = client.json("reservation", "GET", path, params={"at": wire(at.when(client.now()))})
    session.show(_thing(answer))


def show_lease(session: Session, lease: Mapping[str, object]) -> None:
    """Print a lease: for people with its hosts and servers, for programs as the service answered."""
    if session.form != "table" or session.columns or not _is_whole(lease):
        session.show(lease)
        return
    hosts = hosts_of(session, lease)
    addresses = lease_view.addresses(session) if any(host.get("servers") for host in hosts or ()) else {}
    session.show(lease_view.fields(lease, hosts, addresses, session.client.now()))


def _is_whole(answer: Mapping[str, object]) -> "TypeGuard[Lease]":
    """Return whether an answer is a lease, and not the plan of a dry run."""
    return {"id", "reservations", "events"} <= answer.keys()


def hosts_of(session: Session, lease: "Lease") -> "list[LeaseHost] | None":
    """Return the hosts of a lease, as far as the caller may know them; None if the service does not say."""
    try:
        answer = session.client.json("reservation", "GET", f"/leases/{lookup.part(str(lease['id']))}/hosts")
    except Failure as failure:
        if failure.code in (NOT_FOUND, NOT_ALLOWED):
            return None
        raise
    known: list[LeaseHost] | None = answer.get("hosts")
    return known or []


@group.command("hosts")
@click.argument("lease")
@listed
def hosts(lease: str) -> None:
    """List the hosts of a lease with their properties and servers, as far as CLIMATE_LEASE_HOSTS lets its owner see."""
    session = current()
    shown = lookup.lease(session.client, lease)
    rows = hosts_of(session, shown) or []
    plain = session.form in ("json", "yaml")
    session.show_all(rows if plain else [lease_view.host_row(row) for row in rows], HOST_COLUMNS)


@group.command("history")
@click.argument("lease")
@listed
def history(lease: str) -> None:
    """List the history of a lease from the journal."""
    session = current()
    path = f"/leases/{_past_lease_id(session, lease)}/history"
    answer = session.client.json("reservation", "GET", path)
    entries: list[LeaseEntry] = answer["history"]
    rows = history_rows(entries)
    if session.form == "table" and not session.columns:
        session.show_all(
            sentences(entries, session.table_style, _own_id(session)),
            SENTENCE_COLUMNS,
        )
    else:
        session.show_all(rows, HISTORY_COLUMNS)


def _own_id(session: Session) -> str:
    user = session.client.token.body.get("user")
    return str(user.get("id") if user else None)


def _past_lease_id(session: Session, lease: str) -> str:
    """Return the id of a lease; a lease that is deleted has no name any more."""
    try:
        return lookup.lease_id(session.client, lease)
    except Failure as failure:
        if failure.code == NOT_FOUND:
            failure.hint += (
                "; a deleted lease is named by its whole id: `climate notice list --long` has those of yours"
            )
        raise


def history_rows(history: "Iterable[LeaseEntry]") -> list[dict[str, object]]:
    """Return the rows of a history with their event and its result."""
    lines = list(history)
    kinds: dict[str | None, str] = {
        event["id"]: event["kind"] for line in lines for event in line["body"].get("events", ())
    }
    return [
        {
            **line,
            "event": kinds.get(line["body"].get("event_id")),
            "outcome": line["body"].get("outcome"),
            "reason": line["body"].get("reason"),
        }
        for line in lines
    ]


@group.command("set")
@click.argument("lease")
@click.option("--name", help="New name.")
@click.option("--start", type=MomentType(), help="New start.")
@click.option("--end", type=MomentType(), help="New end; `now` ends it.")
@click.option("--before-end", type=MomentType(), help="New time of before_end_lease.")
@click.option("--reservation-id", metavar="ID", help="Id of the changed reservation, if the lease has several.")
@sharing_options.sharing_options(new=False)
@capacity(new=False)
@waited
@dry_run
@output_options
def set_(lease: str, **given: Unpack[SetOptions]) -> None:
    """Update a lease: name, dates, amounts, the end action, and the projects and users with whom it is shared."""
    session = current()
    now = session.client.now().replace(microsecond=0)
    body: dict[str, object] = {"name": given["name"]} if given["name"] is not None else {}
    dates = {"start_date": given["start"], "end_date": given["end"], "before_end_date": given["before_end"]}
    for key, date in dates.items():
        if date is not None:
            body[key] = "now" if date.is_now else wire(date.when(now))
    if change := reservation_change(given):
        body["reservations"] = [{"id": _reservation_id(session, lease, given["reservation_id"]), **change}]
    if sharing_options.is_changed(given):
        body["sharing"] = sharing_options.changed(lookup.lease(session.client, lease), given)
    if not body:
        raise click.UsageError("nothing to change was given")
    _put(session, lookup.lease_id(session.client, lease), body, given)


def _reservation_id(session: Session, lease: str, chosen: str | None) -> str:
    reservations = lookup.lease(session.client, lease)["reservations"]
    if chosen:
        return lookup.whole_id("lease", chosen, lambda: reservations, "reservation")
    if len(reservations) == 1:
        return str(reservations[0]["id"])
    ids = ", ".join(str(reservation["id"]) for reservation in reservations)
    raise click.UsageError(
        f"lease {lease} has {len(reservations)} reservations ({ids}); name one with --reservation-id"
    )


def _put(session: Session, lease_id: str, body: Mapping[str, object], options: ChangedOptions, etag: str = "") -> None:
    headers = {"If-Match": etag} if etag else {}
    sent: Sent = {"json": body, "headers": headers, "params": dry(options["dry_run"])}
    answer: LeaseAnswer = session.client.json("reservation", "PUT", f"/leases/{lease_id}", **sent)
    if options["wait"] and not options["dry_run"]:
        answer = {"lease": _wait(session, lease_id, "", seconds(options["timeout"]))}
    show_lease(session, _thing(answer))


@group.command("extend")
@click.argument("lease")
@click.argument("length", required=False, type=SpanType())
@click.option("--until", type=MomentType(), help="New end instead of a length.")
@waited
@dry_run
@output_options
def extend(lease: str, length: timedelta | None, until: Moment | None, **given: Unpack[ChangedOptions]) -> None:
    """Extend a lease by LENGTH or --until a time."""
    _move_end(lease, length, until, given)


@group.command("shorten")
@click.argument("lease")
@click.argument("length", required=False, type=SpanType())
@click.option("--until", type=MomentType(), help="New end instead of a length; `now` ends it.")
@waited
@dry_run
@output_options
def shorten(lease: str, length: timedelta | None, until: Moment | None, **given: Unpack[ChangedOptions]) -> None:
    """Shorten a lease by LENGTH or --until a time."""
    _move_end(lease, None if length is None else -length, until, given)


def _move_end(lease: str, by: timedelta | None, until: Moment | None, options: ChangedOptions) -> None:
    exactly_one(("LENGTH", "--until"), by, until)
    session = current()
    client = session.client
    lease_id = lookup.lease_id(client, lease)
    if until is not None:
        end = "now" if until.is_now else wire(until.when(client.now().replace(microsecond=0)))
        _put(session, lease_id, {"end_date": end}, options)
        return
    answer = client.call("reservation", "GET", f"/leases/{lease_id}")
    present: LeaseAnswer = client.body(answer)
    end = wire(read(present["lease"]["end_date"]) + (by or timedelta()))
    _put(session, lease_id, {"end_date": end}, options, answer.headers.get("ETag", ""))


@group.command("delete")
@click.argument("leases", nargs=-1, required=True, metavar="LEASE...")
@waited
@dry_run
@output_options
def delete(leases: tuple[str, ...], wait: bool, timeout: timedelta, dry_run: bool) -> None:
    """Delete leases, and end those that have started; their history stays."""
    session = current()
    for lease_id in [lookup.lease_id(session.client, lease) for lease in leases]:
        answer = session.client.json("reservation", "DELETE", f"/leases/{lease_id}", params=dry(dry_run))
        if answer:
            session.show(_thing(answer))
        if wait and not dry_run:
            _wait_gone(session, lease_id, seconds(timeout))


@group.command("wait")
@click.argument("lease")
@click.option("--for", "status", default="ACTIVE", show_default=True, help="Status to wait for, or DELETED.")
@click.option("--timeout", type=SpanType(), default="10m", show_default=True, help="Timeout; exit code 7 after it.")
@output_options
def wait_(lease: str, status: str, timeout: timedelta) -> None:
    """Wait until a lease has a status."""
    session = current()
    lease_id = lookup.lease_id(session.client, lease)
    if status.upper() == "DELETED":
        _wait_gone(session, lease_id, seconds(timeout))
    else:
        show_lease(session, _wait(session, lease_id, status.upper(), seconds(timeout)))


def _wait(session: Session, lease_id: str, status: str, timeout: float) -> "Lease":
    """Return the lease once it has `status`, or is settled if `status` is empty."""
    wanted = (status,) if status else SETTLED
    failed = ("ERROR", *AFTER.get(status, ())) if status and status != "ERROR" else ()

    def why(lease: "Lease | None") -> str | None:
        if lease is None:
            return f"lease {lease_id} is gone"
        return f"lease {lease_id} is {lease['status']}" if lease["status"] in failed else None

    def there(lease: "Lease | None") -> bool:
        return lease is not None and lease["status"] in wanted

    goal = Goal(f"lease {lease_id}", lambda: _read(session, lease_id), there, why, _advice(lease_id))
    return existing(goal, wait(session, goal, timeout))


def _wait_gone(session: Session, lease_id: str, timeout: float) -> None:
    def why(lease: "Lease | None") -> str | None:
        return f"lease {lease_id} could not be ended" if lease and lease["status"] == "ERROR" else None

    goal = Goal(
        f"lease {lease_id}", lambda: _read(session, lease_id), lambda lease: lease is None, why, _advice(lease_id)
    )
    wait(session, goal, timeout)


def _advice(lease_id: str) -> str:
    return f"`climate lease history {lease_id}` shows why"


def _read(session: Session, lease_id: str) -> "Lease | None":
    try:
        return lookup.lease_by_id(session.client, lease_id)
    except Failure as failure:
        if failure.code == NOT_FOUND:
            return None
        raise
