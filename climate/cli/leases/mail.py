"""climate mail: the topics about which you get mail."""

from typing import TYPE_CHECKING

import click

from climate.cli.connection.session import current
from climate.cli.options import output_options

if TYPE_CHECKING:
    from climate.cli.response_types.notices import MailPreferences

PATH = "/mail-preferences"
KEY = "mail_preferences"

TOPICS = ("start", "end_24h", "end_1h", "before_end", "degraded", "healed", "ended", "preempted", "waiting")


@click.group("mail")
def group() -> None:
    """Mail about your leases."""


@group.command("show")
@output_options
def show() -> None:
    """Show the topics about which you get mail, and your address."""
    session = current()
    session.show(_row(session.client.json("reservation", "GET", PATH)[KEY]))


@group.command("set")
@click.argument("topics", nargs=-1, type=click.Choice(TOPICS), metavar="[TOPIC]...")
@click.option("--all", "every", is_flag=True, help="All topics.")
@click.option("--none", "nothing", is_flag=True, help="No mail.")
@output_options
def set_(topics: tuple[str, ...], every: bool, nothing: bool) -> None:
    """Set the topics about which you get mail, instead of the present ones.

    start: an hour before a lease starts; end_24h, end_1h: before it ends; before_end: at the time of its own event;
    degraded, healed: its hosts; ended; preempted: its hosts are needed; waiting: the waiting list.
    """
    if sum((bool(topics), every, nothing)) != 1:
        raise click.UsageError("give topics, --all or --none")
    session = current()
    body = {"topics": list(TOPICS if every else dict.fromkeys(topics))}
    row: MailPreferences = session.client.json("reservation", "PUT", PATH, json=body)[KEY]
    session.show(_row(row))
    if row["topics"] and not row["address"]:
        session.say("you have no mail address: an administrator sets it with `climate user set --email`")
    if row["topics"] and not row["is_sent"]:
        session.say("this deployment sends no mail: CLIMATE_SMTP_URL is not set")


def _row(known: "MailPreferences") -> dict[str, object]:
    return {**known, "topics": " ".join(known["topics"])}
