"""Cache of verified passwords, so that not every request and not every sign-in needs argon2."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from secrets import token_bytes
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

V = TypeVar("V")

LIFE = 60.0
"""Lifetime of a cached password in seconds; a revocation ends it sooner."""

MOST = 1024


class Memory(Generic[V]):
    """Maps a keyed digest of a subject and its password to a value; the password itself is not stored."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._key = token_bytes(32)
        self._lock = Lock()
        self._values: OrderedDict[bytes, tuple[float, V]] = OrderedDict()

    def recall(self, subject: str, password: str) -> V | None:
        """Return the cached value, unless it has expired."""
        with self._lock:
            until, value = self._values.get(self._digest(subject, password), (0.0, None))
        return value if until > self._clock() else None

    def keep(self, subject: str, password: str, value: V) -> None:
        """Store a value; the oldest entries are evicted first."""
        with self._lock:
            self._values[self._digest(subject, password)] = (self._clock() + LIFE, value)
            while len(self._values) > MOST:
                self._values.popitem(last=False)

    def _digest(self, subject: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(subject)}:{subject}:{password}".encode(), "sha256")
