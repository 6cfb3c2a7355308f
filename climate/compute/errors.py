"""What can go wrong in the bundled cloud.  The docstring is the message when none is given."""

from collections.abc import Mapping, Sequence
from typing import Any


class ComputeError(Exception):
    """The cloud could not carry out the request."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class BadRequest(ComputeError):
    """The request is not usable."""


class InvalidInput(BadRequest):
    """A value of the request does not fit what is there."""


class NotFound(ComputeError):
    """No such thing."""


class Forbidden(ComputeError):
    """Whoever asks may not do this."""


class Conflict(ComputeError):
    """The state of things does not allow this."""


class Busy(Conflict):
    """Something else is under way; try again when it is finished."""


class Waits(Conflict):
    """It could not be done together with other things without waiting; ask for it alone."""


class NoValidHost(Conflict):
    """No valid host was found. There are not enough hosts available."""

    def __init__(self, message: str = "", *, trail: Mapping[str, Any] | None = None, found: int = 0) -> None:
        """`trail`: how it came to that; `found`: servers of the request that a node was found for."""
        super().__init__(message)
        self.trail = trail or {}
        self.found = found


class ComputeHostMetricNotFound(NoValidHost):
    """A metric that is required to weigh hosts is not reported by all of them."""


class SchedulerHostFilterNotFound(ComputeError):
    """There is no such filter."""


class SchedulerWeigherNotFound(ComputeError):
    """There is no such weigher."""


class SchedulerCostFunctionNotFound(ComputeError):
    """There is no such cost function."""


class SchedulerNotFound(ComputeError):
    """There is no such scheduler."""


class NoMoreAddresses(Conflict):
    """Zero fixed ips available."""

    def __init__(self, message: str = "", *, found: int = 0) -> None:
        """`found`: addresses that there were."""
        super().__init__(message)
        self.found = found


class NoMoreNetworks(Conflict):
    """There is no network left for the project."""


class NoMoreFloatingAddresses(Conflict):
    """Zero floating ips available."""


class FloatingAddressInUse(Conflict):
    """The floating address is associated already."""


class MacsCollide(ComputeError):
    """No MAC could be found that nobody has."""


class QuotaExceeded(ComputeError):
    """The quota of the project does not allow this."""


class NoImageRoom(ComputeError):
    """There is no room for this image."""


class StaleToken(ComputeError):
    """A later claim has already worked on this."""


class ClaimLost(ComputeError):
    """Somebody else took the capacity of a chosen node first: choose again."""

    def __init__(self, reasons: Sequence[str] = ()) -> None:
        """`reasons`: one for each node that has no room any more."""
        super().__init__(" ".join(reasons))
        self.reasons = tuple(reasons)


class VirtError(ComputeError):
    """The virtualization driver failed."""


class NetworkError(ComputeError):
    """The network of a host could not be made as it should be."""


class NetworkUnavailable(ComputeError):
    """The network host does not answer now: try again later."""


class ZoneLoop(ComputeError):
    """The request came back to a zone that it has been in: a child zone leads to one of its parents."""


class ZoneUnavailable(ComputeError):
    """A child zone does not answer."""
