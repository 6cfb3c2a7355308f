"""test:ledger: pages in a folder, on which every hook leaves one line, and never two.

Each reservation has a page.  A line is {"word", "token", "did"}: the hook that
was called, the token it came with, and what became of it: applied, seen (it was
applied before), later (the first try came to nothing), waits, fenced.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marshmallow import Schema, fields
from sqlalchemy import Connection

from climate.cloud import Cloud, CloudError, Fenced, NotYet
from climate.plugin import Allocation, ReservationContext, ResourceRequest

APPLIED = "applied"


class PageSpec(Schema):
    """Where the pages are, and how hard the work is."""

    folder = fields.String(required=True, metadata={"description": "An existing folder for the pages."})
    work = fields.Float(load_default=0.0, metadata={"description": "Seconds that each hook takes."})
    trouble = fields.String(load_default="", metadata={"description": "What the first call of a hook meets."})


class Ledger:
    """Holds nothing; its effects are lines in a file."""

    resource_type = "test:ledger"
    spec_schema = PageSpec

    def check(self, cloud: Cloud, ask: ResourceRequest) -> None:
        """Nothing can be wrong."""

    def reserve(self, conn: Connection, ask: ResourceRequest) -> Allocation:
        return Allocation(spec=dict(ask.spec))

    def on_start(self, cloud: Cloud, lent: ReservationContext) -> None:
        _apply(lent, "start")

    def before_end(self, cloud: Cloud, lent: ReservationContext) -> None:
        _apply(lent, "before_end")

    def on_end(self, cloud: Cloud, lent: ReservationContext) -> None:
        _apply(lent, "end")


def _apply(lent: ReservationContext, word: str) -> None:
    spec = lent.reservation.spec
    time.sleep(float(spec["work"]) / 2)
    trouble = _write(Path(spec["folder"]) / str(lent.reservation.id), word, lent.token, str(spec["trouble"]))
    time.sleep(float(spec["work"]) / 2)
    if trouble:
        raise trouble


def _write(page: Path, word: str, token: int, trouble: str) -> Exception | None:
    """Leave a line; the answer is what the hook is to raise."""
    with _opened(page) as (file, lines):
        did, raised = _decide(lines, word, token, trouble)
        os.write(file, (json.dumps({"word": word, "token": token, "did": did}) + "\n").encode())
    return raised


def _decide(lines: list[dict[str, Any]], word: str, token: int, trouble: str) -> tuple[str, Exception | None]:
    if any(line["token"] > token for line in lines):
        return "fenced", Fenced(f"{word}: somebody came with a later token")
    known = [line["did"] for line in lines if line["word"] == word]
    if APPLIED in known:
        return "seen", None
    if trouble == "error" and not known:
        return "later", CloudError(f"{word}: the first try always fails")
    if trouble == "wait" and not known:
        return "waits", NotYet(f"{word}: it takes a while")
    return APPLIED, None


@contextmanager
def _opened(page: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The page for us alone, and its lines."""
    file = os.open(page, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file, [json.loads(line) for line in page.read_text(encoding="utf-8").splitlines()]
    finally:
        os.close(file)
