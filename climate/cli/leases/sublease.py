"""climate lease sublet and subleases: hosts of a lease for another project, for a part of its time."""

from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import uuid4

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.dates import Moment, MomentType, SpanType, end_of, wire
from climate.cli.leases import lease_view
from climate.cli.leases.idempotency_times import RequestTimes
from climate.cli.leases.lease import show_lease
from climate.cli.options import dry, dry_run, exactly_one, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Lease, LeaseAnswer

COLUMNS = ("id", "name", "project_id", "status", "start_date", "end_date")


class SubletOptions(TypedDict):
    """Options of `sublet`."""

    project_id: str
    user_id: str | None
    hosts: int | None
    host_names: tuple[str, ...]
    start: Moment
    end: Moment | None
    length: timedelta | None
    before_end: Moment | None
    reservation_id: str | None
    on_end: str | None
    grace: timedelta | None
    idempotency_key: str | None
    dry_run: bool


@click.command("sublet")
@click.argument("lease")
@click.argument("name")
@click.option("--to-project", "project_id", required=True, metavar="ID", help="Project that gets the hosts.")
@click.option("--to-user", "user_id", metavar="ID", help="User to whom the sub-lease belongs; default: you.")
@click.option("--hosts", type=click.IntRange(1), help="Number of hosts; those without servers are chosen first.")
@click.option("--host", "host_names", multiple=True, metavar="NAME", help="A host of the lease; repeatable.")
@click.option("--start", type=MomentType(), default="now", show_default=True, help="Start: now, +30m, or a time.")
@click.option("--end", type=MomentType(), help="End: +6h, or a time.")
@click.option("--for", "length", type=SpanType(), help="Length instead of the end: 90s, 6h, 1d12h.")
@click.option("--before-end", type=MomentType(), help="Time of before_end_lease.")
@click.option("--reservation", "reservation_id", metavar="ID", help="Reservation with the hosts, if there are several.")
@click.option("--on-end", help="Action for servers at the end, as in `climate lease create`.")
@click.option("--grace", type=SpanType(), help="Time after the end for which servers continue.")
@click.option(
    "--idempotency-key", metavar="KEY", help="Idempotency key: a repetition with the same key gives nothing twice."
)
@dry_run
@output_options
def sublet(lease: str, name: str, **given: Unpack[SubletOptions]) -> None:
    """Give hosts of LEASE to another project for a part of its time, as a lease NAME of that project."""
    session = current()
    exactly_one(("--end", "--for"), given["end"], given["length"])
    exactly_one(("--hosts", "--host"), given["hosts"], given["host_names"] or None)
    key, now = given["idempotency_key"], session.client.now().replace(microsecond=0)
    times = RequestTimes.of(session.environ)
    scope = f"{session.client.cloud.source} {session.client.cloud.auth_url} {lease} {name} {key}"
    now = times.first(scope, now) if key and not given["dry_run"] else now
    start, before_end = given["start"], given["before_end"]
    end = end_of(start.when(now), given["end"], given["length"], now)
    body = {
        "name": name,
        "start_date": "now" if start.is_now else wire(start.when(now)),
        "end_date": wire(end),
        "before_end_date": wire(before_end.when(now)) if before_end else None,
        **_fields(given),
    }
    path = f"/leases/{lookup.lease_id(session.client, lease)}/subleases"
    headers = {"Idempotency-Key": key or str(uuid4())}
    query = dry(given["dry_run"])
    made: LeaseAnswer = session.client.json("reservation", "POST", path, json=body, headers=headers, params=query)
    show_lease(session, made["lease"] if list(made) == ["lease"] else made)


def _fields(options: SubletOptions) -> dict[str, object]:
    """Return the fields of a request that were given as options."""
    keys = {
        "project_id": options["project_id"],
        "user_id": options["user_id"],
        "hosts": options["hosts"],
        "reservation_id": options["reservation_id"],
        "on_end": options["on_end"],
    }
    wanted: dict[str, object] = {key: value for key, value in keys.items() if value}
    if options["host_names"]:
        wanted["host_names"] = list(options["host_names"])
    if options["grace"]:
        wanted["grace_period"] = int(options["grace"].total_seconds())
    return wanted


@click.command("subleases")
@click.argument("lease")
@listed
def subleases(lease: str) -> None:
    """List the sub-leases of a lease."""
    session = current()
    path = f"/leases/{lookup.lease_id(session.client, lease)}/subleases"
    rows: list[Lease] = session.client.json("reservation", "GET", path)["subleases"]
    plain = session.form in ("json", "yaml")
    session.show_all(rows if plain else [lease_view.list_row(row) for row in rows], COLUMNS)


COMMANDS = (sublet, subleases)
