"""climate notice: notifications of owners and administrators."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from climate.cli import lookup, output
from climate.cli.connection.client import Client
from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, read, wire
from climate.cli.options import listed

if TYPE_CHECKING:
    from climate.cli.response_types.notices import Notice

COLUMNS = ("at", "kind", "message", "lease_id", "host_id")
DEAD_COLUMNS = ("id", "at", "kind", "message", "audience", "attempts", "error")
PAUSE = 2.0
"""Poll period of --follow in seconds."""

BACK = timedelta(minutes=1)
"""Overlap of two polls, because an earlier transaction may commit later."""


@click.group("notice")
def group() -> None:
    """Notifications of owners of leases and of administrators."""


@group.command("list")
@click.option("--since", type=MomentType(), help="Only notifications since this time.")
@click.option("--kind", help="Only notifications of this kind, such as lease.before_end.")
@click.option("--lease", help="Only notifications about this lease.")
@click.option("--dead", is_flag=True, help="Only those whose delivery by mail or webhook was given up.")
@click.option("--follow", is_flag=True, help="Keep running and show new ones; one JSON object per line with -f json.")
@listed
def list_(since: Moment | None, kind: str | None, lease: str | None, dead: bool, follow: bool) -> None:
    """List notifications, oldest first."""
    session = current()
    client = session.client
    asked = {"kind": kind, "lease_id": lookup.lease_id(client, lease) if lease else None}
    asked["dead"] = "true" if dead else None
    asked["since"] = wire(since.when(client.now())) if since else None
    query = {name: value for name, value in asked.items() if value}
    if not follow:
        session.show_all(client.pages("reservation", "/notices", "notices", query), DEAD_COLUMNS if dead else COLUMNS)
        return
    for notice in followed(client, query):
        click.echo(_line(notice, session), nl=False)


@group.command("resend")
@click.argument("notices", nargs=-1, required=True, metavar="NOTICE...")
def resend(notices: tuple[str, ...]) -> None:
    """Send notifications again whose delivery was given up, by their ids (administrator)."""
    client = current().client
    for notice in notices:
        client.json("reservation", "POST", f"/notices/{lookup.part(notice)}/resend")


def _line(notice: "Notice", session: Session) -> str:
    if session.form == "json":
        return output.json_line(notice)
    return output.records([notice], "value", session.columns or COLUMNS)


def followed(client: Client, query: dict[str, str], pause: float = PAUSE) -> "Iterator[Notice]":
    """Yield every notification once, without end."""
    seen: dict[str, str] = {}
    while True:
        notices: Iterator[Notice] = client.pages("reservation", "/notices", "notices", query)
        for notice in notices:
            if notice["id"] not in seen:
                seen[notice["id"]] = notice["at"]
                yield notice
        since = max((read(at) for at in seen.values()), default=client.now()) - BACK
        seen = {number: at for number, at in seen.items() if read(at) >= since}
        query = {**query, "since": wire(since)}
        time.sleep(pause)
