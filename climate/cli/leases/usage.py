"""climate usage: host hours of leases."""

import click

from climate.cli.connection.session import current
from climate.cli.dates import Moment, MomentType, wire
from climate.cli.options import listed

COLUMNS = ("start", "key", "reserved_hours", "used_hours", "idle_hours", "slot_hours")
PARTS = ("day", "week", "month", "all")


@click.command("usage")
@click.option("--start", type=MomentType(), help="Beginning of the report; by default 30 days before its end.")
@click.option("--end", type=MomentType(), help="End of the report; by default now.")
@click.option(
    "--by",
    default="project",
    show_default=True,
    metavar="KEY",
    help="Key of the lines: project, user, host, pool, or property:NAME.",
)
@click.option(
    "--per", type=click.Choice(PARTS), default="all", show_default=True, help="Part of the time that a line is about."
)
@click.option("--project", metavar="PROJECT", help="Only this project, by id (administrator).")
@listed
def command(**asked: Moment | str | None) -> None:
    """Report reserved, used and idle host hours of leases.

    A host is used while a server runs on it.
    """
    session = current()
    now = session.client.now()
    query = {
        name: wire(value.when(now)) if isinstance(value, Moment) else value
        for name, value in asked.items()
        if value is not None
    }
    session.show_all(session.client.json("reservation", "GET", "/usage", params=query)["usage"], COLUMNS)
