"""Incremental comparison of rows with the journal, suitable for continuous use in production.

Each run continues where the last one stopped, and repeats the comparison of earlier findings.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.service.journal import consistency_check
from climate.service.journal.consistency_check import NO_JOURNAL, Portion
from climate.service.transaction import run
from climate.store.journal import check_progress
from climate.store.journal.check_progress import Progress
from climate.store.journal.row_differences import FIRST, LAST

KNOWN = 200
"""Maximum number of earlier findings that a run compares again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a run: a number of facts or a time, whichever is reached first. Each portion is compared as a whole."""

    facts: int = 50_000
    time: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Checked:
    """State of the comparison after a run."""

    progress: Progress
    differing: int
    """Number of streams that differ from their rows."""
    first: str = ""
    """One of them, and its difference."""


def check_portion(climate: Climate, bounds: Bounds | None = None, size: int = consistency_check.PORTION) -> Checked:
    """Compare the next streams with their rows, at least one portion, and at most to the end of a pass."""
    limits = bounds or Bounds()
    _compare_findings_again(climate)
    known = began = run(climate, _begin, climate)
    start, facts = _now(climate), 0
    while True:
        portion = consistency_check.compare_portion(climate, known.after, size)
        facts += portion.facts
        after = run(climate, _note, climate, known, portion)
        if after is None:  # another process is comparing
            break
        known = after
        if portion.last is None or facts >= limits.facts or _now(climate) - start >= limits.time:
            break
    return checked(climate) or Checked(began, 0)


def checked(climate: Climate) -> Checked | None:
    """Return the state of the comparison; None before the first run."""
    with reading(climate.engine) as conn:
        known = check_progress.progress(conn)
        first = next((f"{stream} {what}" for stream, what in check_progress.differences(conn, 1)), "")
        return None if known is None else Checked(known, check_progress.count(conn), first)


def _begin(conn: Connection, climate: Climate) -> Progress:
    check_progress.begin(conn, first := Progress(FIRST, climate.now(conn)))
    return check_progress.progress(conn) or first


def _note(conn: Connection, climate: Climate, before: Progress, portion: Portion) -> Progress | None:
    now = climate.now(conn)
    if portion.last is None:
        after = Progress(FIRST, now, 0, before.began_at)
    else:
        after = replace(before, after=portion.last, streams=before.streams + portion.streams)
    if not check_progress.advance(conn, before, after):
        return None
    result = [(difference.stream, difference.what) for difference in portion.differences]
    check_progress.note(conn, before.after, portion.last or LAST, result, now)
    return after


def _compare_findings_again(climate: Climate) -> None:
    """Remove earlier findings that are repaired; rows without a journal wait for their turn."""
    with reading(climate.engine) as conn:
        before = [stream for stream, what in check_progress.differences(conn, KNOWN) if what != NO_JOURNAL]
    if before:
        still = {one.stream for one in consistency_check.compare_streams(climate, before)}
        mended = [stream for stream in before if stream not in still]
        run(climate, check_progress.forget, mended)


def _now(climate: Climate) -> datetime:
    with reading(climate.engine) as conn:
        return climate.now(conn)
