"""Rate limit of requests per user and second, counted by each web process separately."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from climate.domain.errors import TooManyRequests

BURST = 3
"""Seconds' worth of requests that may arrive at once."""

MOST_USERS = 10_000
"""Maximum of users with a bucket; beyond it the bucket of the user silent longest is dropped."""


@dataclass
class Allowance:
    """Token bucket per user, which fills with `per_second` and holds BURST seconds' worth; 0 disables it."""

    per_second: float
    noun: str = "requests"
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def spend(self, user_id: str) -> None:
        """Count one request; TooManyRequests above the user's limit."""
        if not self.per_second:
            return
        now, most = self.clock(), max(1.0, BURST * self.per_second)
        with self._lock:
            left, seen = self._left.pop(user_id, (most, now))
            left = min(most, left + (now - seen) * self.per_second)
            self._left[user_id] = (left - 1 if left >= 1 else left, now)
            if len(self._left) > MOST_USERS:
                self._left.popitem(last=False)
        if left < 1:
            raise TooManyRequests(f"Too many {self.noun}: {self.per_second:g} per second are allowed")
