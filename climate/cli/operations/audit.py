"""climate audit: changes of limits, pools, hosts, users and more, with their authors."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from climate.cli.connection.session import current
from climate.cli.dates import Moment, MomentType, wire
from climate.cli.options import listed
from climate.domain.audit_trail import AuditKind

if TYPE_CHECKING:
    from climate.cli.response_types.notices import AuditEntry

COLUMNS = ("at", "author", "kind", "object_id", "name", "action", "before", "after")
MOST = 100


@click.command("audit")
@click.option("--kind", type=click.Choice([str(kind) for kind in AuditKind]), help="Only objects of this kind.")
@click.option("--object", "object_id", metavar="ID", help="Only this object, by its id; a host also by its name.")
@click.option("--author", metavar="USER", help="Only changes by this user, by id.")
@click.option("--project", metavar="PROJECT", help="Only objects of this project, by id.")
@click.option("--since", type=MomentType(), help="Only changes since this time.")
@click.option("--until", type=MomentType(), help="Only changes before this time.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=MOST, show_default=True, help="Maximum of entries; 0: all."
)
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@listed
def command(limit: int, as_json: bool, **asked: str | Moment | None) -> None:
    """List changes with author, before and after, newest first (administrator)."""
    session = current()
    if as_json:
        session.form = "json"
    query = _query(session.client.now(), asked)
    entries: Iterator[AuditEntry] = session.client.pages("reservation", "/audit", "audit", query)
    result = list(islice(entries, limit or None))
    session.show_all(result if session.form in ("json", "yaml") else map(_line, result), COLUMNS)


def _query(now: datetime, asked: Mapping[str, str | Moment | None]) -> dict[str, str]:
    """Return the conditions that were given, by their names in the API."""
    names = {"object_id": "object"}
    given = {names.get(name, name): value for name, value in asked.items() if value is not None}
    return {name: wire(value.when(now)) if isinstance(value, Moment) else value for name, value in given.items()}


def _line(entry: "AuditEntry") -> dict[str, object]:
    return {**entry, "before": _values(entry.get("before")), "after": _values(entry.get("after"))}


def _values(values: Mapping[str, object] | None) -> str:
    """Return fields and values in one cell."""
    return " ".join(f"{name}={_value(value)}" for name, value in sorted((values or {}).items()))


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
