"""Lowest pace of the uploads of a web process: higher while other uploads wait for a thread."""

from threading import Lock

LEAST_BYTES_PER_SECOND = 4096
"""A long body that comes slower is given up, and so is an answer that goes slower."""

BUSY_BYTES_PER_SECOND = 64 * 1024
"""An upload that comes slower is given up while others wait for its thread, unless the deployment says otherwise."""

SETTING = "UPLOAD_BYTES_PER_SECOND"
"""Key of that pace in the configuration of the Flask application."""


class UploadPace:
    """Counts the uploads that wait for a thread."""

    def __init__(self, busy: int = BUSY_BYTES_PER_SECOND) -> None:
        self.busy = busy
        self._waiting = 0
        self._lock = Lock()

    def count_waiting(self, more: int) -> None:
        """Count `more` uploads that wait for a thread; -1 when one of them has got it."""
        with self._lock:
            self._waiting += more

    def least(self) -> int:
        """Return the bytes per second that an upload has to bring now."""
        return max(self.busy, LEAST_BYTES_PER_SECOND) if self._waiting else LEAST_BYTES_PER_SECOND


def least() -> int:
    """Return the bytes per second that any other long body has to bring."""
    return LEAST_BYTES_PER_SECOND
