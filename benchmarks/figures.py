"""How figures are taken down and shown: medians with quartiles, and how they compare."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles

from benchmarks.peer import BLAZAR


@dataclass(frozen=True, slots=True)
class Spread:
    """Of many times of one thing, in milliseconds."""

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
    """How long each of so many calls takes, in seconds."""
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
    print(f"\n{title}", flush=True)


def line(what: str, figure: object, target: str = "", peer: str = "") -> None:
    """One figure, with what is wanted of it and what the peer was measured at."""
    notes = [f"target {target}"] if target else []
    notes += [f"{BLAZAR}: {peer}"] if peer else []
    print(f"  {what:<58} {figure}{'   (' + '; '.join(notes) + ')' if notes else ''}", flush=True)
