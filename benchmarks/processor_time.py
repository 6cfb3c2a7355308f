"""Processor time of processes and of those of Postgres, read from /proc."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

TICK = 1000 / os.sysconf("SC_CLK_TCK")
"""Milliseconds; no reading is finer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Milliseconds of processor time until a moment: of the processes, and of Postgres for one database."""

    processes: float
    postgres: float

    def since(self, earlier: "Reading", times: int = 1) -> "Reading":
        """Return what was spent since an earlier reading on each of so many things."""
        return Reading((self.processes - earlier.processes) / times, (self.postgres - earlier.postgres) / times)

    def __str__(self) -> str:
        return f"{self.processes:.2f} ms, of Postgres {self.postgres:.2f} ms"


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads what processes, their children and the backends of one database have spent."""

    pids: Sequence[int]
    database_url: str

    def read(self) -> Reading:
        """Read all of them; a process that has ended counts no more."""
        everybody = {one for pid in self.pids for one in (pid, *_descendants(pid))}
        return Reading(sum(map(_spent, everybody)), sum(map(_spent, _backends(self.database_url))))


def _spent(pid: int) -> float:
    """Milliseconds of processor time of all threads of a process; 0 for one that is gone."""
    words = _stat(pid)
    return TICK * (int(words[11]) + int(words[12])) if words else 0.0


def _descendants(pid: int) -> list[int]:
    parents = {
        int(path.name): int(words[1])
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and (words := _stat(int(path.name)))
    }
    found = [pid]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found[1:]


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _backends(url: str) -> list[int]:
    """The processes of Postgres that serve a database, when it is on this machine."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg", database="postgres"))
    with engine.connect() as conn:
        query = text("SELECT pid FROM pg_stat_activity WHERE datname = :name ORDER BY pid")
        found = [int(pid) for pid in conn.scalars(query, {"name": make_url(url).database})]
    engine.dispose()
    return found
