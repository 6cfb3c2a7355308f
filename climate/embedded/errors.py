"""What can go wrong with the stores that climate runs itself."""


class StoreError(Exception):
    """A store cannot be run here; the message says why and what helps."""


class AlreadyRunning(StoreError):
    """Another climate uses this home."""
