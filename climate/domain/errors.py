"""Errors of the engine. The docstring is the message when none is given.

`api.errors` maps them to HTTP statuses.
"""

from collections.abc import Mapping
from typing import Any


class ClimateError(Exception):
    """The request could not be carried out."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class InvalidInput(ClimateError):
    """The input is not usable."""


class InvalidPeriod(InvalidInput):
    """The period is not usable."""


class InvalidRequirements(InvalidInput):
    """The requirements are not usable."""


class NotAuthenticated(ClimateError):
    """The request you have made requires authentication."""


class Forbidden(ClimateError):
    """The role of the caller does not allow this."""


class LimitExceeded(Forbidden):
    """A limit of the project is in the way."""

    def __init__(self, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.details = details
        """The limit, its value, the use and the request, for programs."""


class NotFound(ClimateError):
    """No such thing."""


class Conflict(ClimateError):
    """The state of things does not allow this."""


class Tampered(Conflict):
    """Rows in the database are not what the journal says."""


class LeasesInTheWay(Conflict):
    """Leases count on it."""

    def __init__(self, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.details = details
        """The leases and the hosts that each would lose, for programs."""


class NotEnoughHosts(Conflict):
    """Not enough hosts available"""


class NotEnoughAddresses(InvalidInput):
    """Not enough floating IPs available"""


class NotEnoughStorage(Conflict):
    """Not enough storage available"""


class IllegalMove(Conflict):
    """The event is not in a state that allows this."""


class Busy(Conflict):
    """Something is at work on this right now; try again shortly."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class PreconditionFailed(ClimateError):
    """Someone else changed it first: the version given is not the present one."""


class KeyReused(ClimateError):
    """This Idempotency-Key was used with another request."""


class Unavailable(ClimateError):
    """The service is too busy or its database is away; nothing was changed."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class DiskFull(Unavailable):
    """The disk of the database is full; nothing was changed. An operator has to free some space."""

    retry_after = 60
    """Seconds after which another try makes sense."""


class NoVerdict(Unavailable):
    """The service that has to agree to leases gives no usable answer; nothing was changed."""

    retry_after = 10
    """Seconds after which another try makes sense."""


class Undecided(Unavailable):
    """The database went away while this was being written: it may have been done or not, so look first."""


class TooManyRequests(ClimateError):
    """Too many requests."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class TooManyAttempts(ClimateError):
    """Too many failed attempts to sign in; wait before the next."""

    retry_after = 60
    """Seconds after which another try makes sense."""


class AccountGuessed(TooManyAttempts):
    """The password of this account is being guessed; wait ten minutes before the next try from here."""

    retry_after = 600
