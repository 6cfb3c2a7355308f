"""Cache of validated tokens, bounded in number and in time; a revocation applies when the entry is dropped."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from time import monotonic, time

from climate.identity.authentication.tokens import Grant

MOST_CACHED = 10_000
"""Maximum number of tokens in a cache; beyond it the one that was used longest ago is dropped."""


@dataclass(frozen=True, slots=True)
class _Entry:
    grant: Grant
    until: float
    """Time of the monotonic clock at which the entry is dropped."""


class TokenCache:
    """Grants of tokens that Keystone validated at most `seconds` ago.

    Keys are hashes: a dump of the memory of a process shows no token that is not in use.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic, now: Callable[[], float] = time) -> None:
        self._seconds = seconds
        self._clock = clock
        self._now = now
        self._lock = Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def recall(self, token: str, *, expired_too: bool) -> Grant | None:
        """Return the grant of a token; None if it is not cached, or expired and only `expired_too` accepts that."""
        key = _key(token, expired_too)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry.until <= self._clock() or not self._is_valid(entry.grant, expired_too):
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return entry.grant

    def keep(self, token: str, grant: Grant, *, expired_too: bool) -> None:
        """Cache the grant of a token that Keystone validated just now."""
        if not self._seconds:
            return
        with self._lock:
            self._entries[_key(token, expired_too)] = _Entry(grant, self._clock() + self._seconds)
            if len(self._entries) > MOST_CACHED:
                self._entries.popitem(last=False)

    def drop(self, token: str) -> None:
        """Forget a token that was revoked."""
        with self._lock:
            for expired_too in (False, True):
                self._entries.pop(_key(token, expired_too), None)

    def __len__(self) -> int:
        return len(self._entries)

    def _is_valid(self, grant: Grant, expired_too: bool) -> bool:
        return expired_too or self._now() < grant.expires_at


def _key(token: str, expired_too: bool) -> bytes:
    return sha256(f"{int(expired_too)}{token}".encode()).digest()
