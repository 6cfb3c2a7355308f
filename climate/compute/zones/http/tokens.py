"""Cache of child zones' tokens, per process, until shortly before they expire."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

MARGIN_SECONDS = 30
"""Seconds before expiry from which a token is not used, so that it is valid until the child checks it."""

UNKNOWN_SECONDS = 300
"""Lifetime in seconds of a token with an unreadable expiry."""

LONGEST_SECONDS = 86400


@dataclass
class Tokens:
    """Tokens by account; thread-safe. Values never appear in a repr."""

    _known: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def get(self, account: str) -> str | None:
        """Return the token of an account, unless it is about to expire."""
        with self._lock:
            token, until = self._known.get(account, ("", 0.0))
            return token if until > time.monotonic() else None

    def keep(self, account: str, token: str, expires_at: object) -> None:
        """Store a token until `expires_at`, an ISO 8601 time."""
        with self._lock:
            self._known[account] = (token, time.monotonic() + _seconds(expires_at))

    def forget(self, account: str, token: str) -> None:
        """Delete a rejected token, unless there is a newer one."""
        with self._lock:
            if self._known.get(account, ("", 0.0))[0] == token:
                del self._known[account]


def _seconds(expires_at: object) -> float:
    try:
        end = datetime.fromisoformat(expires_at) if isinstance(expires_at, str) else None
    except ValueError:
        end = None
    if end is None:
        return UNKNOWN_SECONDS
    end = end if end.tzinfo else end.replace(tzinfo=UTC)
    left = (end - datetime.now(UTC)).total_seconds()
    return min(max(left - MARGIN_SECONDS, 0), LONGEST_SECONDS)
