"""Errors of the stores that climate runs itself."""


class StoreError(Exception):
    """Raised if a store cannot run here; the message has the reason and the fix."""


class AlreadyRunning(StoreError):
    """Raised if another climate uses this home."""
