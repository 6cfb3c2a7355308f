"""Errors of the engine. The docstring is the message when none is given.

`api.errors` maps them to HTTP statuses.
"""

from collections.abc import Mapping
from uuid import UUID


class ClimateError(Exception):
    """The request could not be carried out."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class InvalidInput(ClimateError):
    """The input is invalid."""


class InvalidPeriod(InvalidInput):
    """The period is invalid."""


class InvalidRequirements(InvalidInput):
    """The requirements are invalid."""


class NotAuthenticated(ClimateError):
    """The request you have made requires authentication."""


class Forbidden(ClimateError):
    """The role of the caller does not allow this."""


class LimitExceeded(Forbidden):
    """A limit of the project is exceeded."""

    def __init__(self, message: str, details: Mapping[str, object]) -> None:
        super().__init__(message)
        self.details = details
        """The limit, its value, the use and the request, for programs."""


class NotFound(ClimateError):
    """The object was not found."""


class Conflict(ClimateError):
    """The present state does not allow this."""


class Tampered(Conflict):
    """Rows in the database differ from the journal."""


class UnreadableLease(Exception):
    """Raised for a lease whose rows this release cannot read.

    It is no ClimateError: the request was right, and a round that meets one goes on with the next lease. The message
    names no lease, since it may be one of another project; that of `named` does.
    """

    def __init__(self, lease_id: UUID, project_id: str = "", message: str = "") -> None:
        super().__init__(
            message
            or "A lease has rows that this release cannot read: an administrator finds it with "
            "`climate journal check`, and repairs it with `climate event mend`"
        )
        self.lease_id = lease_id
        self.project_id = project_id

    @property
    def named(self) -> "UnreadableLease":
        """The same error for readers that may know of the lease: its message names the lease."""
        message = (
            f"Lease {self.lease_id} has rows that this release cannot read: "
            f"an administrator repairs it with `climate event mend {self.lease_id}`"
        )
        return UnreadableLease(self.lease_id, self.project_id, message)


class UnreadableFact(ValueError):
    """Raised for a fact of the journal that this release cannot read, such as one of a newer release."""

    def __init__(self, stream: UUID, version: int, kind: str) -> None:
        super().__init__(
            f"Fact {version} of {stream} in the journal, a {kind[:64]}, cannot be read by this release: "
            "use the release that wrote it; `climate journal check` finds all of them"
        )


class LeasesInTheWay(Conflict):
    """Leases hold the hosts."""

    def __init__(self, message: str, details: Mapping[str, object]) -> None:
        super().__init__(message)
        self.details = details
        """The leases and the hosts that each would lose, for programs."""


class OccurrencesClash(Conflict):
    """Occurrences of a series do not fit."""

    def __init__(self, message: str, details: Mapping[str, object]) -> None:
        super().__init__(message)
        self.details = details
        """The occurrences and the reason of each, for programs."""


class NotEnoughHosts(Conflict):
    """Not enough hosts available"""


class NotEnoughAddresses(InvalidInput):
    """Not enough floating IPs available"""


class NotEnoughStorage(Conflict):
    """Not enough storage available"""


class TooComplex(Conflict):
    """The reservations are too different to be allocated together: ask for fewer or for equal sizes in one lease."""


class IllegalMove(Conflict):
    """The event is not in a state that allows this."""


class Busy(Conflict):
    """Another operation on this is in progress; try again shortly."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class PreconditionFailed(ClimateError):
    """The given version is outdated: the object was changed meanwhile."""


class KeyReused(ClimateError):
    """This Idempotency-Key was used with another request."""


class Unavailable(ClimateError):
    """The service is overloaded or its database is unreachable; nothing was changed."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class DiskFull(Unavailable):
    """The disk of the database is full; nothing was changed. An operator has to free some space."""

    retry_after = 60
    """Seconds after which another try makes sense."""


class NoVerdict(Unavailable):
    """The approval service gave no usable answer; nothing was changed."""

    retry_after = 10
    """Seconds after which another try makes sense."""


class Undecided(Unavailable):
    """The database connection was lost during the commit: check if the request took effect before a retry."""


class TooManyRequests(ClimateError):
    """Too many requests."""

    retry_after = 1
    """Seconds after which another try makes sense."""


class TooManyAttempts(ClimateError):
    """Too many failed attempts to sign in; wait before the next."""

    retry_after = 60
    """Seconds after which another try makes sense."""


class AccountGuessed(TooManyAttempts):
    """Too many failed attempts to sign in to this account; wait ten minutes before the next one from here."""

    retry_after = 600
