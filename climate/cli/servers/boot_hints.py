"""Options of `climate boot` for place and time of a server, and their scheduler hints."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import TypedDict, TypeVar

import click

from climate.cli import lookup
from climate.cli.connection.session import Session
from climate.cli.dates import Moment, MomentType, SpanType, end_of, wire
from climate.cli.options import JsonType, PairType

F = TypeVar("F", bound=Callable[..., object])


class HintOptions(TypedDict):
    """Options of `placement`."""

    hint: tuple[tuple[str, str], ...]
    reservation: str | None
    lease: str | None
    reserved: bool
    lease_params: dict[str, object] | None
    start: Moment | None
    end: Moment | None
    length: timedelta | None


def placement(command: F) -> F:
    """Add the options that become scheduler hints."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


OPTIONS = (
    click.option("--hint", type=PairType(), multiple=True, metavar="KEY=VALUE", help="A scheduler hint; repeatable."),
    click.option("--reservation", metavar="ID", help="Use the hosts of this reservation."),
    click.option("--lease", help="Use the hosts of this lease, by name or id."),
    click.option("--reserved", is_flag=True, help="Keep the server RESERVED until its own lease starts."),
    click.option(
        "--lease-params",
        type=JsonType(dict, wanted="object"),
        metavar="JSON",
        help="Lease of a --reserved server.",
    ),
    click.option("--start", type=MomentType(), help="Start of that lease, instead of --lease-params."),
    click.option("--end", type=MomentType(), help="End of that lease."),
    click.option("--for", "length", type=SpanType(), help="Length of that lease, instead of --end."),
)


def hints(session: Session, name: str, options: HintOptions) -> dict[str, object]:
    """Return the scheduler hints for a boot; repeated hints become a list."""
    repeated: dict[str, list[str]] = {}
    for key, value in options["hint"]:
        repeated.setdefault(key, []).append(value)
    wanted: dict[str, object] = {key: values if len(values) > 1 else values[0] for key, values in repeated.items()}
    if options["reservation"] and options["lease"]:
        raise click.UsageError("give --reservation or --lease")
    if options["reservation"]:
        wanted["reservation"] = lookup.reservation_id(session.client, options["reservation"])
    elif options["lease"]:
        wanted["reservation"] = _reservation_of(session, options["lease"])
    if options["reserved"]:
        wanted |= {"reserved": "True", "lease_params": json.dumps(_lease_params(session, name, options))}
    elif any(
        value is not None for value in (options["lease_params"], options["start"], options["end"], options["length"])
    ):
        raise click.UsageError("--lease-params, --start, --end and --for need --reserved")
    return wanted


def _lease_params(session: Session, name: str, options: HintOptions) -> dict[str, object]:
    start, end, length = options["start"], options["end"], options["length"]
    if options["lease_params"] is not None and (start or end or length):
        raise click.UsageError("give --lease-params, or --start with --end or --for")
    if options["lease_params"] is not None:
        return dict(options["lease_params"])
    if (end is None) == (length is None):
        raise click.UsageError("--reserved needs --lease-params, or one of --end and --for")
    now = session.client.now().replace(microsecond=0)
    begins = start.when(now) if start else now
    ends = end_of(begins, end, length, now)
    params = {"name": f"lease-{name}", "end": wire(ends)}
    return {**params, "start": "now" if start is None or start.is_now else wire(begins)}


def _reservation_of(session: Session, wanted: str) -> str:
    lease = lookup.lease(session.client, wanted)
    ids = [str(held["id"]) for held in lease["reservations"] if held["resource_type"] == "physical:host"]
    if len(ids) == 1:
        return ids[0]
    said = f"has {len(ids)} reservations of hosts ({', '.join(ids)})" if ids else "has no reservation of hosts"
    raise click.UsageError(f"lease {wanted} {said}; name one with --reservation")
