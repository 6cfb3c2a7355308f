"""climate journal: the journal, and its comparison with the rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast
from uuid import UUID

import click

from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, SpanType, wire
from climate.cli.errors import ERROR, UNREACHABLE, USAGE, Failure
from climate.cli.leases.lease import HISTORY_COLUMNS, history_rows
from climate.cli.options import listed, output_options
from climate.database.connections import reading
from climate.embedded import running
from climate.settings import Settings

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Actor, StoredEntry

    # Import the engine late, because that takes longer than most commands run.
    from climate.context import Climate
    from climate.domain.lease import Lease
    from climate.service.journal.consistency_check import Difference
    from climate.store.journal.journal import Entry


@contextmanager
def direct_engine(session: Session) -> Iterator["Climate"]:
    """Return the engine on its database, for commands that do not use the API."""
    from climate import bootstrap
    from climate.store import db_errors

    deployment = bootstrap.build(with_stores(session.settings))
    try:
        yield deployment.climate
    except db_errors.ERRORS as error:
        said = " ".join(str(error).split())[:300]
        code = UNREACHABLE if db_errors.is_transient(error) else ERROR
        raise Failure(f"the database: {said}", code, "`climate doctor` looks at everything") from None
    finally:
        deployment.climate.engine.dispose()


def with_stores(settings: Settings) -> Settings:
    """Return the settings with the URLs of the running stores: the given ones, or those of `climate up` in the same
    home.
    """
    if settings.database_url:
        return settings
    stores = running(settings.home)
    if stores is None:
        raise Failure(
            f"no stores run in {settings.home}, and CLIMATE_DATABASE_URL is not set",
            UNREACHABLE,
            "start them by `climate up`, or set CLIMATE_HOME to the home of a running one",
        )
    return replace(settings, database_url=stores.database_url, redis_url=settings.redis_url or stores.redis_url)


@click.group("journal")
def group() -> None:
    """The journal of leases; commands use the database directly."""


@group.command("check")
@listed
def check() -> None:
    """Compare the journal with the rows; shows every difference, and exits with 1 if there is one."""
    session = current()
    from climate.service.journal import consistency_check

    with direct_engine(session) as climate:
        differences = consistency_check.differences(climate)
    _show(session, differences)
    if differences:
        raise Failure(f"{len(differences)} differences", ERROR, "`climate journal rebuild` repairs the rows")
    session.say("the rows are what the journal says")


@group.command("rebuild")
@listed
def rebuild() -> None:
    """Rebuild the rows from the journal while climate runs; shows what cannot be repaired, and exits with 1 then."""
    session = current()
    from climate.service.journal.rebuild import rebuild

    with direct_engine(session) as climate:
        done = rebuild(climate)
    session.say(f"{done.streams} streams were compared with their rows, and the rows of {done.mended} rebuilt")
    _show(session, done.left)
    if done.left:
        hint = "docs/journal.md lists what cannot be rebuilt; compare conflicting rows by hand"
        raise Failure(f"{len(done.left)} differences are left", ERROR, hint)


def _show(session: Session, differences: "Sequence[Difference]") -> None:
    rows = [
        {
            "stream": str(difference.stream),
            "table": difference.table,
            "row": difference.row,
            "column": difference.column,
            "difference": difference.what,
        }
        for difference in differences
    ]
    session.show_all(rows, ("stream", "difference"))


@group.command("archive")
@click.option(
    "--older-than", type=SpanType(), required=True, help="Minimum age of the deletion of leases, such as 365d."
)
def archive(older_than: timedelta) -> None:
    """Archive leases that were deleted long ago, with their facts, in compressed files.

    The files are in the folder CLIMATE_ARCHIVE_DIR, from which their history is still served.
    The next run continues an interrupted one.
    """
    session = current()
    from climate.service.journal import archives

    with direct_engine(session) as climate:
        try:
            done = archives.archive(climate, older_than)
        except OSError as error:
            raise Failure(f"the archive cannot be written: {error}", ERROR, "fix the cause and run it again") from None
    what = f"leases archived: {done.leases}, series: {done.series}"
    session.say(f"{what} ({done.facts} facts, {done.files} files); kept: {done.kept}")
    if done.waiting:
        said = "; ".join(wrong for _, wrong in done.waiting)
        hint = "put the files back, or `climate journal lost NAME` for one that will not come back"
        raise Failure(f"archives of earlier runs are not finished, nothing of them was deleted: {said}", ERROR, hint)


@group.command("lost")
@click.argument("name", metavar="ARCHIVE")
def lost(name: str) -> None:
    """Declare an archive lost whose file is missing or damaged, and will not come back.

    Leases that are still in the tables stay there, and are archived again later.  The history of the others is gone.
    """
    session = current()
    from climate.service.journal import archives

    with direct_engine(session) as climate:
        result = archives.declare_lost(climate, name)
    session.say(f"archive {name} is declared lost; leases kept: {result.kept}, without history: {result.gone}")


@group.command("show")
@click.argument("lease_id", metavar="LEASE")
@click.option("--at", type=MomentType(), help="Show the state at this time.")
@output_options
def show(lease_id: str, at: Moment | None) -> None:
    """Show the facts of a lease, or with --at its state at that time."""
    from climate.service.journal import consistency_check

    session = current()
    try:
        wanted = UUID(lease_id)
    except ValueError:
        raise Failure(f"{lease_id!r} is not the id of a lease", USAGE, "`climate lease list` shows the ids") from None
    with direct_engine(session) as climate:
        lease, entries = consistency_check.lease_history(climate, wanted, _when(climate, at))
    if at is None:
        session.show_all(history_rows([_line(entry) for entry in entries]), HISTORY_COLUMNS)
    else:
        session.show(_state(lease))


def _when(climate: "Climate", at: Moment | None) -> datetime | None:
    if at is None:
        return None
    with reading(climate.engine) as connection:
        return at.when(climate.now(connection))


def _line(entry: "Entry") -> "StoredEntry":
    """Return an entry of the journal as it is stored."""
    from climate.store.journal import fact_codec

    fact = entry.fact
    return {
        "version": entry.version,
        "at": wire(fact.at),
        "kind": type(fact).__name__,
        "body": fact_codec.encode(fact),
        "actor": cast("Actor", dict(entry.actor)),
        "request_id": entry.request_id,
        "recorded_at": wire(entry.recorded_at),
    }


def _state(lease: "Lease") -> dict[str, object]:
    """Return the state of a lease in the terms of the engine."""
    return {name: _plain(getattr(lease, name)) for name in (field.name for field in fields(lease))} | {
        "status": str(lease.status)
    }


def _plain(value: object) -> object:
    """Return a value of the domain as JSON."""
    if isinstance(value, datetime):
        return wire(value)
    if isinstance(value, tuple | list | frozenset | set):
        return [_plain(inner) for inner in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value if value is None or isinstance(value, bool | int | float) else str(value)
