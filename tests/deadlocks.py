"""Deadlocks of one database, as Postgres counts them, and the counts of a load that ran on it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

import psycopg
import pytest

SECONDS = (
    pytest.param(10, marks=pytest.mark.slow),
    pytest.param(600, marks=(pytest.mark.campaign, pytest.mark.timeout(1500))),
)
"""Lengths of the tests of the order of locks: a share for each change, and ten minutes in the campaign."""

CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"


@contextmanager
def counted(server_url: str, database: str) -> Iterator[Callable[[], int]]:
    """Give a function that returns how many deadlocks a database has counted, once all its clients are gone."""
    pause = Event()
    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as conn:

        def ask(question: str) -> int:
            row = conn.execute(question, (database,)).fetchone()
            return int(row[0]) if row else 0

        def count() -> int:
            while ask(CLIENTS):
                pause.wait(0.05)
            return ask("SELECT deadlocks FROM pg_stat_database WHERE datname = %s")

        yield count


def record(
    record_property: Callable[[str, object], None],
    seconds: int,
    done: Counter[str],
    refused: Counter[str],
    deadlocks: int,
) -> None:
    """Record the counts of a load for docs/campaign.md."""
    record_property("seconds", seconds)
    record_property("kinds of acts", len(done))
    record_property("acts", done.total())
    record_property("refused", refused.total())
    record_property("deadlocks", deadlocks)
    print(f"done {dict(done)}\nrefused {dict(refused)}")
