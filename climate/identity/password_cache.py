"""Cache of verified passwords, so that HTTP Basic does not need argon2 for every request."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from secrets import token_bytes
from threading import Lock
from time import monotonic

from climate.identity.tokens import Grant

LIFE = 60.0
"""Lifetime of a cached password in seconds; a revocation ends it sooner."""

MOST = 1024


class Memory:
    """Maps a keyed digest of login and password to the resulting grant; the password itself is not stored."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._key = token_bytes(32)
        self._lock = Lock()
        self._grants: OrderedDict[bytes, tuple[float, Grant]] = OrderedDict()

    def recall(self, login: str, password: str) -> Grant | None:
        """Return the cached grant, unless it has expired."""
        with self._lock:
            until, grant = self._grants.get(self._digest(login, password), (0.0, None))
        return grant if until > self._clock() else None

    def keep(self, login: str, password: str, grant: Grant) -> None:
        """Store a grant; the oldest entries are evicted first."""
        with self._lock:
            self._grants[self._digest(login, password)] = (self._clock() + LIFE, grant)
            while len(self._grants) > MOST:
                self._grants.popitem(last=False)

    def _digest(self, login: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(login)}:{login}:{password}".encode(), "sha256")
