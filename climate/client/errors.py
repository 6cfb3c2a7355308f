"""Errors of the client, one class for each way in which a program can react."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from climate.cli.errors import CONFLICT, NOT_ALLOWED, NOT_FOUND, QUOTA, TIMEOUT, UNREACHABLE, USAGE, Failure


class ClientError(Exception):
    """A request failed. `hint` says what to do, and `request_id` is that of the server's log."""

    def __init__(self, message: str, hint: str = "", request_id: str = "", details: Mapping[str, object] | None = None):
        super().__init__(message)
        self.message, self.hint, self.request_id = message, hint, request_id
        self.details: Mapping[str, object] = details or {}


class InvalidRequest(ClientError):
    """The request, or an entry of clouds.yaml, is invalid."""


class NotFound(ClientError):
    """The resource does not exist, or belongs to another project."""


class NotAllowed(ClientError):
    """The credentials are wrong, or the role does not allow the request."""


class Conflict(ClientError):
    """The resource is in another state, or too few resources are free. The message says when they would be."""


class LimitExceeded(ClientError):
    """A limit of the project or a quota refuses the request; `details["limit"]` has its name and value."""


class TimedOut(ClientError):
    """The wait ended before the state was reached; the request itself stays."""


class Unreachable(ClientError):
    """The server cannot be reached, or is too busy."""


_CLASSES: Mapping[int, type[ClientError]] = {
    USAGE: InvalidRequest,
    NOT_FOUND: NotFound,
    NOT_ALLOWED: NotAllowed,
    CONFLICT: Conflict,
    QUOTA: LimitExceeded,
    TIMEOUT: TimedOut,
    UNREACHABLE: Unreachable,
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise a failure of the commands as the error of its kind."""
    try:
        yield
    except Failure as failure:
        kind = _CLASSES.get(failure.code, ClientError)
        raise kind(failure.message, failure.hint, failure.request_id, failure.details) from None
