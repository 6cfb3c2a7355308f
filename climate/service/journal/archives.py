"""Archival of leases and series that are long gone to compressed files, which still answer for their history.

Each file is complete on the disk before the first row of its leases is deleted. The next run continues an
interrupted one, wherever it was killed. At any time the facts of a lease are in the journal, in an archive,
or in both.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Busy, Conflict, InvalidInput, NotFound, Unavailable
from climate.domain.lease import fold
from climate.domain.planning import series
from climate.service import transaction
from climate.settings import Settings
from climate.store.journal import archive_files, archives, fact_codec, journal
from climate.store.journal.archive_files import Damaged, Line
from climate.store.journal.archives import BEGINNING, ArchivableStream
from climate.store.journal.journal import Entry
from climate.store.journal.row_differences import UNREADABLE
from climate.store.limits import LONGEST_GRACE

log = structlog.get_logger(__name__)

IN_A_FILE = 10_000
IN_A_BLOCK = 100
"""Leases that are compressed and read together."""
AT_ONCE = 500
"""Leases whose rows one transaction deletes."""

Step = Callable[[str], None]
"""Called after each step with a description of it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of leases in a file, in a block of it, and in a transaction that deletes rows."""

    file: int = IN_A_FILE
    block: int = IN_A_BLOCK
    deleted: int = AT_ONCE


@dataclass(slots=True)
class Outcome:
    """Result of a run; `kept` are leases and series of that age that are still needed.

    `waiting` names the files of earlier runs that are missing or damaged, each with what is wrong.
    """

    files: int = 0
    leases: int = 0
    series: int = 0
    facts: int = 0
    kept: int = 0
    waiting: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LostArchive:
    """An archive that was declared lost: leases that stay in the tables, and leases whose history is gone."""

    kept: int
    gone: int


def folder(settings: Settings) -> Path:
    """Return the folder of archives."""
    return Path(settings.archive_dir) if settings.archive_dir else settings.home / "archives"


def archive(
    climate: Climate,
    older_than: timedelta,
    sizes: Sizes = Sizes(),
    step: Step = lambda done: None,
) -> Outcome:
    """Move leases that have been gone for longer than that to files, and series without leases.

    Raises InvalidInput if such leases still count in the limits of their projects, and Busy during another run.
    """
    least = timedelta(days=climate.settings.limit_period_days) + LONGEST_GRACE
    if older_than < least:
        raise InvalidInput(
            f"leases gone for less than {least.days} days count in limits, so --older-than must be at least"
            f" {least.days}d, not {older_than.days}d"
        )
    with _alone(climate):
        return _archived(climate, older_than, _Run(climate, folder(climate.settings), sizes, step))


@contextmanager
def _alone(climate: Climate) -> Iterator[None]:
    """Hold the lock of archives; Busy while another process holds it."""
    with reading(climate.engine) as guard:
        if not archives.try_lock(guard):
            raise Busy("another archive run is in progress: try again when it is done")
        try:
            yield
        finally:
            archives.unlock(guard)


def declare_lost(climate: Climate, name: str) -> LostArchive:
    """Delete the index of an archive whose file will not come back.

    Leases of it that are still in the tables stay there, and a later run archives them again.
    NotFound for an unknown name; Conflict while the file is as it was written; Busy while archives are created.
    """
    with _alone(climate):
        with reading(climate.engine) as conn:
            result = next((one for one in archives.complete(conn) if one.name == name), None)
        if result is None:
            raise NotFound(f"no archive is named {name[:200]!r}: `climate journal check` names those that are damaged")
        if archive_files.damage(folder(climate.settings) / name, result.size, result.sha256) is None:
            raise Conflict(f"the archive {name} is as it was written: only a missing or damaged one can be lost")
        kept, gone = transaction.run(climate, archives.delete_index, result.id)
    log.warning("an archive is declared lost", archive=name, kept=kept, gone=gone)
    return LostArchive(kept, gone)


def absent(conn: Connection, climate: Climate) -> list[str]:
    """Return the names of archives whose files are missing or have another size; their content is not read."""
    path = folder(climate.settings)
    return [one.name for one in archives.complete(conn) if not archive_files.is_there(path / one.name, one.size)]


@dataclass(frozen=True, slots=True)
class _Run:
    climate: Climate
    folder: Path
    sizes: Sizes
    step: Step


def _archived(climate: Climate, older_than: timedelta, run: _Run) -> Outcome:
    with reading(climate.engine) as conn:
        now = climate.now(conn)
    outcome, before = Outcome(), now - older_than
    outcome.waiting += _finish(run)
    outcome.leases = _moved(run, archives.old, before, now, outcome)
    outcome.series = _moved(run, archives.old_series, before, now, outcome)  # each after its leases
    return outcome


Find = Callable[[Connection, datetime, tuple[datetime, UUID], int], list[ArchivableStream]]


def _moved(run: _Run, find: Find, before: datetime, now: datetime, outcome: Outcome) -> int:
    """Move what is found to files; return how many leases or series that were."""
    after, count = BEGINNING, 0
    while result := transaction.run(run.climate, find, before, after, run.sizes.file):
        after = (result[-1].gone_at, result[-1].id)
        free = [one for one in result if not one.is_needed]
        outcome.kept += len(result) - len(free)
        if free:
            count += _move(run, free, before, now, outcome)
    return count


def _finish(run: _Run) -> list[tuple[str, str]]:
    """Finish an interrupted run: delete incomplete files, and rows whose file is complete.

    Return the files that are missing or damaged, and the fault of each: the rows of their leases stay.
    """
    waiting: list[tuple[str, str]] = []
    with reading(run.climate.engine) as conn:
        unfinished = archives.listed(conn, "writing", "written")
    for one in unfinished:
        if one.state == "writing":
            _drop(run, one.id, one.name)
        elif (wrong := archive_files.damage(run.folder / one.name, one.size, one.sha256)) is None:
            _delete_rows(run, one.id)
        else:
            log.error("an archive cannot be finished", archive=one.name, reason=wrong)
            waiting.append((one.name, wrong))
    return waiting


def _verify(run: _Run, name: str, size: int, sha256: str) -> None:
    """Raise Unavailable for a changed file, which may hold the only copy of its leases."""
    if (wrong := archive_files.damage(run.folder / name, size, sha256)) is not None:
        raise Unavailable(f"{wrong}: nothing was deleted; restore the file, and run the command again")


def _drop(run: _Run, number: int, name: str) -> None:
    archive_files.forget(run.folder / name)
    transaction.run(run.climate, archives.forget, number)


def _move(run: _Run, free: Sequence[ArchivableStream], before: datetime, now: datetime, outcome: Outcome) -> int:
    """Move leases or series to one file; return how many it has."""
    name = f"leases-{now:%Y%m%dT%H%M%SZ}-{uuid4().hex[:12]}.jsonl.gz"
    number = transaction.run(run.climate, archives.begin, name, before, now)
    run.step("begun")
    about = {"older_than": before.isoformat(), "made_at": now.isoformat()}
    written = archive_files.write(run.folder / name, _blocks(run, free), about)
    run.step("written")
    if not written.places:
        _drop(run, number, name)
        outcome.kept += len(free)
        return 0
    _verify(run, name, written.size, written.sha256)
    transaction.run(run.climate, archives.finish, number, written)
    run.step("known")
    _delete_rows(run, number)
    outcome.files += 1
    outcome.facts += sum(place.version for place in written.places)
    outcome.kept += len(free) - len(written.places)
    return len(written.places)


def _blocks(run: _Run, free: Sequence[ArchivableStream]) -> Iterator[list[Line]]:
    """Yield blocks of leases or series whose facts are complete, match their rows, and end with the deletion."""
    for start in range(0, len(free), run.sizes.block):
        versions = {one.id: one.version for one in free[start : start + run.sizes.block]}
        with reading(run.climate.engine) as conn:
            result = list(archives.lines(conn, versions))
        yield [line for line in result if _is_whole(line, versions[UUID(line["lease_id"])])]
        run.step("a block written")


def _is_whole(line: Line, version: int) -> bool:
    whole = [fact["version"] for fact in line["facts"]] == list(range(1, version + 1)) and _is_gone(line)
    if not whole:
        log.warning("not archived: rows differ from journal", stream=line["lease_id"])
    return whole


def _is_gone(line: Line) -> bool:
    """Return whether the facts end with the deletion: a row that was changed by hand must not delete a lease."""
    try:
        entries = [_entry(UUID(line["lease_id"]), fact) for fact in line["facts"]]
        if happened := journal.of_series(entries):
            return series.fold(happened).gone
        return fold(journal.of_lease(entries)).gone
    except UNREADABLE:
        return False


def _delete_rows(run: _Run, number: int) -> None:
    while transaction.run(run.climate, archives.delete_rows, number, run.sizes.deleted):
        run.step("rows deleted")
    transaction.run(run.climate, archives.close, number)
    run.step("done")


def facts_of(conn: Connection, climate: Climate, lease_id: UUID) -> list[Entry]:
    """Return the facts of a lease from the journal, or from an archive if they were moved.

    Raises Unavailable if the archive cannot be read.
    """
    if entries := journal.read(conn, lease_id):
        return entries
    result = archives.place(conn, lease_id)
    if result is None:
        return []
    name, at = result
    try:
        line = archive_files.read(folder(climate.settings) / name, at.place, at.size, lease_id)
    except Damaged as error:
        log.error("archive unreadable", archive=name, reason=str(error))
        raise Unavailable(
            f"The history of lease {lease_id} is in the archive {name}, which cannot be read here:"
            " an administrator has to check CLIMATE_ARCHIVE_DIR and `climate journal check`"
        ) from error
    return [_entry(lease_id, fact) for fact in line["facts"]]


def _entry(stream: UUID, fact: Line) -> Entry:
    return Entry(
        stream,
        fact["version"],
        fact_codec.decode(fact["kind"], fact["body"]),
        fact["actor"],
        fact["request_id"],
        datetime.fromisoformat(fact["recorded_at"]),
    )


def damage(conn: Connection, climate: Climate) -> Iterator[tuple[UUID, str]]:
    """Return the defects of archives: rows left although a file has them, and changed files."""
    for lease_id in archives.with_remaining_rows(conn):
        yield lease_id, "is in an archive, and has rows or a journal"
    for one in archives.complete(conn):
        wrong = archive_files.damage(folder(climate.settings) / one.name, one.size, one.sha256)
        if wrong is not None:
            yield UUID(int=one.id), f"archive: {wrong}"
