"""Clocks that tests move."""

from dataclasses import dataclass


@dataclass
class Hands:
    """A monotonic clock, and the time of day in seconds of the epoch."""

    seconds: float = 0.0
    now: float = 0.0

    def go_on(self, seconds: float) -> None:
        self.seconds += seconds
        self.now += seconds
