"""climate host move, open, close, history: the pool of a host, and its changes."""

from typing import TYPE_CHECKING, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.hosts import pool
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types.hosts import HostEntry

HISTORY = ("version", "at", "kind", "pool", "reason", "by")


@click.command("move")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--to", required=True, metavar="POOL", help="reservation, multi-tenant, maintenance or failed.")
@pool.moving
@dry_run
@listed
def move(hosts: tuple[str, ...], to: str, **given: Unpack[pool.MoveOptions]) -> None:
    """Move hosts to a pool, all of them or none."""
    pool.move(hosts, to, given)


@click.command("open")
@click.argument("host")
@click.option("--reason", default="", help="Reason, kept in the history of the host.")
@dry_run
@output_options
def open_(host: str, reason: str, dry_run: bool) -> None:
    """Allow new allocations of a host again."""
    _open(host, True, reason, dry_run)


@click.command("close")
@click.argument("host")
@click.option("--reason", default="", help="Reason, kept in the history of the host.")
@dry_run
@output_options
def close(host: str, reason: str, dry_run: bool) -> None:
    """Refuse new allocations of a host; existing ones stay."""
    _open(host, False, reason, dry_run)


def _open(host: str, reservable: bool, reason: str, dry_run: bool) -> None:
    session = current()
    path = f"/os-hosts/{lookup.host_id(session.client, host)}/reservable"
    sent: Sent = {"json": {"reservable": reservable, "reason": reason}, "params": dry(dry_run)}
    session.show(session.client.json("reservation", "PUT", path, **sent)["host"])


@click.command("history")
@click.argument("host")
@listed
def history(host: str) -> None:
    """List the history of a host from the journal."""
    session = current()
    path = f"/os-hosts/{lookup.host_id(session.client, host)}/history"
    rows: list[HostEntry] = session.client.json("reservation", "GET", path)["history"]
    plain = session.form in ("json", "yaml")
    session.show_all(rows if plain else [_row(row) for row in rows], HISTORY)


def _row(row: "HostEntry") -> dict[str, object]:
    """Return an entry with its pool, its reason and its author in one cell each."""
    body = row["body"]
    closed = row["kind"] == "HostOpened" and body.get("reservable") is False
    kind = "HostClosed" if closed else row["kind"]
    return {
        **row,
        "pool": body.get("pool"),
        "reason": body.get("reason"),
        "kind": kind,
        "by": row.get("actor", {}).get("user_id"),
    }


COMMANDS = (move, open_, close, history)
