"""What can go wrong in the bundled cloud.  The docstring is the message when none is given."""


class ComputeError(Exception):
    """The cloud could not carry out the request."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class BadRequest(ComputeError):
    """The request is not usable."""


class NotFound(ComputeError):
    """No such thing."""


class Conflict(ComputeError):
    """The state of things does not allow this."""


class Busy(Conflict):
    """Something else is under way; try again when it is finished."""


class NoValidHost(Conflict):
    """No valid host was found. There are not enough hosts available."""


class NoMoreAddresses(Conflict):
    """Zero fixed ips available."""


class QuotaExceeded(ComputeError):
    """The quota of the project does not allow this."""


class StaleToken(ComputeError):
    """A later claim has already worked on this."""


class ClaimLost(ComputeError):
    """Somebody else took the capacity of a chosen node first: choose again."""


class VirtError(ComputeError):
    """The virtualization driver failed."""
