"""Passwords that were right a moment ago, so that HTTP Basic need not pay for argon2 with every request."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from secrets import token_bytes
from threading import Lock
from time import monotonic

from climate.identity.tokens import Grant

LIFE = 60.0
"""Seconds for which a verified password is remembered; a revocation ends it sooner."""

MOST = 1024


class Memory:
    """Maps a keyed digest of login and password to the grant they gave; the password itself is not kept."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._key = token_bytes(32)
        self._lock = Lock()
        self._grants: OrderedDict[bytes, tuple[float, Grant]] = OrderedDict()

    def recall(self, login: str, password: str) -> Grant | None:
        """The grant that was remembered, if that is not too long ago."""
        with self._lock:
            until, grant = self._grants.get(self._digest(login, password), (0.0, None))
        return grant if until > self._clock() else None

    def keep(self, login: str, password: str, grant: Grant) -> None:
        """Remember; the oldest are forgotten first."""
        with self._lock:
            self._grants[self._digest(login, password)] = (self._clock() + LIFE, grant)
            while len(self._grants) > MOST:
                self._grants.popitem(last=False)

    def _digest(self, login: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(login)}:{login}:{password}".encode(), "sha256")
