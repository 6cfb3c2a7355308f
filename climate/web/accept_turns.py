"""Connections shared out evenly over the processes of the web server.

All processes listen on one socket. Clients that connect at the same moment mostly reach the process that wakes first.
The threads of that process would wait for each other, while the other processes idle.
"""

import time
from typing import Any

PAUSE = 0.002
"""Time for which a process leaves further connections to others after it has accepted one, in seconds."""


class AcceptsInTurn:
    """Part of a worker of gunicorn: after each accepted connection it does not listen for a moment."""

    cfg: Any
    accept_pause = PAUSE
    _listens_at = 0.0
    """End of the pause on the steady clock; 0.0 outside a pause."""

    def pause(self) -> None:
        """Stop listening for a moment, so that another worker accepts the next connection."""
        if self.cfg.workers > 1:
            self._listens_at = time.monotonic() + self.accept_pause
            self.set_accept_enabled(False)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen or not; gunicorn asks for it at each turn of its loop, also before the pause is over."""
        if not enabled or time.monotonic() >= self._listens_at:
            super().set_accept_enabled(enabled)  # type: ignore[misc]

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events, at most until the pause is over."""
        if self._listens_at:
            left = max(self._listens_at - time.monotonic(), 0.0)
            timeout = min(timeout, left)
            self._listens_at = self._listens_at if left else 0.0
        super().wait_for_and_dispatch_events(timeout)  # type: ignore[misc]
