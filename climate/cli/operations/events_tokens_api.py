"""climate event, token, api, completion: commands for operators and scripts."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import click
from click.shell_completion import get_completion_class

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.control_characters import escaped_json, escaped_lines
from climate.cli.dates import wire
from climate.cli.errors import ERROR, USAGE, Failure
from climate.cli.operations.journal import direct_engine
from climate.cli.options import JsonType, listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types.leases import ListedEvent

EVENT_COLUMNS = ("id", "lease_id", "event_type", "status", "due_at", "run_at", "attempts", "reason")


@click.group("event")
def event_group() -> None:
    """Events of leases, and those that failed."""


@event_group.command("list")
@click.option("--status", default="ERROR", show_default=True, help="UNDONE, IN_PROGRESS, DONE or ERROR.")
@listed
def event_list(status: str) -> None:
    """List events, by default those that failed (administrator)."""
    session = current()
    session.show_all(_events(session, status), EVENT_COLUMNS)


def _events(session: Session, status: str) -> "Iterator[ListedEvent]":
    return session.client.pages("reservation", "/events", "events", {"status": status})


@event_group.command("requeue")
@click.argument("event_id", metavar="ID")
@output_options
def event_requeue(event_id: str) -> None:
    """Retry failed events (administrator)."""
    session = current()
    failed = lookup.whole_id("event", event_id, lambda: _events(session, "ERROR"))
    answer = session.client.json("reservation", "POST", f"/events/{lookup.part(failed)}/requeue")
    if answer:
        session.show(answer.get("event", answer))


@event_group.command("set-aside")
@listed
def event_set_aside() -> None:
    """List leases with broken rows, whose events do not run; reads the database directly."""
    session = current()
    from climate.service.leases import broken_leases

    with direct_engine(session) as climate:
        result = broken_leases.listed(climate)
    rows = [{"lease_id": str(one.lease_id), "since": wire(one.since), "reason": one.reason} for one in result]
    session.show_all(rows, ("lease_id", "since", "reason"))


@event_group.command("mend")
@click.argument("leases", metavar="LEASE...", nargs=-1)
def event_mend(leases: tuple[str, ...]) -> None:
    """Rebuild rows of leases from their journals, without ID the broken ones; writes the database directly."""
    session = current()
    from climate.domain.errors import ClimateError
    from climate.service.events.event_shares import QUEUE
    from climate.service.leases import broken_leases

    failures: list[Failure] = []
    with direct_engine(session) as climate:
        for lease_id in [_id(one) for one in leases] or [one.lease_id for one in broken_leases.listed(climate)]:
            try:
                lease = broken_leases.repair_lease(climate, lease_id, QUEUE)
            except ClimateError as error:
                failures.append(Failure(str(error), ERROR))
            except (KeyError, ValueError, TypeError) as error:
                said = f"the journal of lease {lease_id} cannot be read ({type(error).__name__}: {error})"
                failures.append(Failure(said, ERROR, "a newer release may have written it: upgrade, and try again"))
            else:
                session.say(f"the rows of lease {lease.id} were rebuilt, and its events run again")
    for failure in failures[1:]:
        session.say(str(failure))
    if failures:
        raise failures[0]


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Failure(f"{text!r} is not the id of a lease", USAGE, "`climate event set-aside` shows the ids") from None


@click.command("token")
@output_options
def token() -> None:
    """Print a token for other programs: curl -H "X-Auth-Token: $(climate token)" …"""
    session = current()
    got = session.client.login()
    if session.form == "table" and not session.columns:
        click.echo(got.id)
        return
    project, user = got.body.get("project"), got.body.get("user")
    ids = {"project_id": project.get("id") if project else None, "user_id": user.get("id") if user else None}
    session.show({"id": got.id, "expires": got.body.get("expires_at"), **ids})


@click.command("api")
@click.argument("method", type=click.Choice(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"], case_sensitive=False))
@click.argument("path")
@click.option("--data", type=JsonType(), metavar="JSON", help="Body of the request.")
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Repeatable.")
def api(method: str, path: str, data: object, header: tuple[str, ...]) -> None:
    """Send one request with a token: climate api GET /v1/leases."""
    session = current()
    if not path.startswith("/") or path.startswith("//"):
        raise Failure(f"{path!r} is not a path of this cloud", USAGE, "start it with one slash: /v1/leases")
    headers = dict(_header(line) for line in header)
    sent: Sent = {"headers": headers}
    if data is not None:
        sent["json"] = data
    answer = session.client.request(method.upper(), session.client.root + path, **sent)
    session.say(f"{answer.status_code} {answer.reason_phrase}")
    click.echo(_pretty(answer.text), nl=False)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise click.UsageError(f"{line!r} is not NAME: VALUE")
    return name.strip(), value.strip()


def _pretty(text: str) -> str:
    try:
        return escaped_json(json.dumps(json.loads(text), indent=2, ensure_ascii=False)) + "\n"
    except ValueError:
        return escaped_lines(text)


LINES = {
    "bash": "echo 'source <(climate completion bash)' >> ~/.bashrc",
    "zsh": "echo 'source <(climate completion zsh)' >> ~/.zshrc",
    "fish": "echo 'climate completion fish | source' >> ~/.config/fish/config.fish",
}
"""Shell -> command that adds the completion to it."""


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(list(LINES)))
@click.pass_context
def completion(context: click.Context, shell: str | None) -> None:
    """Print the completion script of a SHELL; without SHELL, the line that adds it to your own shell for good."""
    if shell is None:
        own = current().environ.get("SHELL", "").rpartition("/")[2]
        click.echo(LINES.get(own, LINES["bash"]))
        return
    maker = get_completion_class(shell)
    if maker is None:
        raise Failure(f"there is no completion for {shell}", ERROR)
    click.echo(maker(context.find_root().command, {}, "climate", "_CLIMATE_COMPLETE").source())
