"""climate calendar: secret feeds by which calendar programs show leases."""

from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.notices import CalendarFeed, NewCalendarFeed

FEEDS = "/calendar-feeds"
COLUMNS = ("id", "name", "scope", "created_at")


@click.group("calendar")
def group() -> None:
    """Calendar feeds: secret URLs by which calendar programs show your leases."""


@group.command("create")
@click.option("--name", default="Leases", show_default=True, help="Name of the calendar.")
@click.option("--project", "whole", is_flag=True, help="All leases of the project instead of yours.")
@output_options
def create(name: str, whole: bool) -> None:
    """Create a calendar feed; its URL is shown once."""
    session = current()
    body = {"name": name, "scope": "project" if whole else "user"}
    made: NewCalendarFeed = session.client.json("reservation", "POST", FEEDS, json=body)["calendar_feed"]
    session.show({"id": made["id"], "url": made["url"], **made})
    session.say("the URL is shown this once; whoever has it reads the leases until `climate calendar delete`")


@group.command("list")
@listed
def list_() -> None:
    """List your calendar feeds in this project; administrators see all feeds."""
    session = current()
    session.show_all(_feeds(session.client), COLUMNS)


@group.command("delete")
@click.argument("feeds", nargs=-1, required=True, metavar="FEED...")
def delete(feeds: tuple[str, ...]) -> None:
    """Revoke calendar feeds by their ids or names."""
    client = current().client
    known = _feeds(client)
    for one in [lookup.only("calendar feed", wanted, known) for wanted in feeds]:
        client.call("reservation", "DELETE", f"{FEEDS}/{lookup.part(one['id'])}")


def _feeds(client: Client) -> "list[CalendarFeed]":
    return list(client.pages("reservation", FEEDS, "calendar_feeds"))
