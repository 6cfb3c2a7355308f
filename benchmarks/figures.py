"""Figures: medians with quartiles, printed as tables and kept for a machine to read."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles

from benchmarks.blazar_figures import BLAZAR


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of many timings, in milliseconds."""

    count: int
    lower: float
    median: float
    upper: float
    p99: float
    longest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ms [{self.lower:.2f}-{self.upper:.2f}], p99 {self.p99:.1f}, n = {self.count}"


def spread(seconds: Sequence[float]) -> Spread:
    """Median, quartiles and the 99th percentile of at least two times."""
    cuts = quantiles(seconds, n=100, method="inclusive")
    return Spread(len(seconds), *(1000 * value for value in (cuts[24], cuts[49], cuts[74], cuts[98], max(seconds))))


def timed(act: Callable[[], object], times: int) -> list[float]:
    """Return the time of each of `times` calls, in seconds."""
    return [_seconds(act) for _ in range(times)]


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being prepared, and how long that took."""
    print(f"  ({what} ...", end="", flush=True)
    begun = time.perf_counter()
    yield
    print(f" {time.perf_counter() - begun:.1f} s)", flush=True)


def head(title: str) -> None:
    """Print the title of a table; the figures after it belong to it."""
    _TITLES.append(title)
    print(f"\n{title}", flush=True)


def line(what: str, figure: object, target: str = "", peer: str = "") -> None:
    """Print and keep one figure, with what is wanted of it and what the peer was measured at."""
    notes = [f"target {target}"] if target else []
    notes += [f"{BLAZAR}: {peer}"] if peer else []
    print(f"  {what:<58} {figure}{'   (' + '; '.join(notes) + ')' if notes else ''}", flush=True)
    RECORD.append(Figure(_TITLES[-1], what, str(figure), *quantity(str(figure))))


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table."""

    table: str
    name: str
    shown: str
    value: float | None
    """The number that it begins with, or None."""
    unit: str


RECORD: list[Figure] = []
"""All figures of this process, in the order in which they were printed."""
_TITLES = [""]
"""The titles of all tables until now; the last one is that of the table that is being printed."""

_LINE = re.compile(r"  (?P<name>\S.{57}) (?P<shown>\S.*)")
_QUANTITY = re.compile(r"(?P<value>\d[\d,]*(?:\.\d+)?)(?P<unit>/s| ms| s| %)?")


def quantity(shown: str) -> tuple[float | None, str]:
    """Return the number that a figure begins with, and its unit; None and "" for one that begins with a word."""
    found = _QUANTITY.match(shown)
    if found is None:
        return None, ""
    return float(found["value"].replace(",", "")), (found["unit"] or "").strip()


def parse(printed: str) -> list[Figure]:
    """Return the figures of tables as `head` and `line` print them."""
    figures, table, before = [], "", None
    for text in printed.splitlines():
        found = _LINE.fullmatch(text)
        if found:
            shown = found["shown"].partition("   (")[0]
            figures.append(Figure(table, found["name"].strip(), shown, *quantity(shown)))
        elif before == "" and text:  # lines of other components follow no blank line
            table = text
        before = text
    return figures


def write(path: Path, about: dict[str, object]) -> None:
    """Write what was measured, and on what, as JSON."""
    path.write_text(json.dumps({**about, "figures": [asdict(one) for one in RECORD]}, indent=1) + "\n")
