"""Errors of the bundled cloud. The docstring is the message if none is given."""

from collections.abc import Mapping, Sequence


class ComputeError(Exception):
    """The cloud could not carry out the request."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class BadRequest(ComputeError):
    """The request is not valid."""


class InvalidInput(BadRequest):
    """A value of the request does not match the existing resources."""


class NotFound(ComputeError):
    """The resource could not be found."""


class Forbidden(ComputeError):
    """The user is not allowed to do this."""


class Conflict(ComputeError):
    """The state of the resource does not allow this."""


class Busy(Conflict):
    """Another operation is in progress; try again when it is finished."""


class Waits(Conflict):
    """The request needs a row that is locked; send it alone, not in a batch."""


class NoValidHost(Conflict):
    """No valid host was found. There are not enough hosts available."""

    def __init__(self, message: str = "", *, trail: Mapping[str, object] | None = None, found: int = 0) -> None:
        """Create the error. `trail`: the steps of the selection; `found`: number of servers that got a node."""
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
        """Create the error. `found`: number of free addresses."""
        super().__init__(message)
        self.found = found


class NoMoreNetworks(Conflict):
    """There is no network left for the project."""


class NoMoreFloatingAddresses(Conflict):
    """Zero floating ips available."""


class FloatingAddressInUse(Conflict):
    """The floating address is associated already."""


class MacsCollide(ComputeError):
    """No unused MAC address could be found."""


class QuotaExceeded(ComputeError):
    """The quota of the project does not allow this."""


class NoImageRoom(ComputeError):
    """There is no space left for this image."""


class NoVolumeRoom(ComputeError):
    """There is no space left for this volume."""


class StaleToken(ComputeError):
    """The token is outdated: a later claim has worked on this resource."""


class ClaimLost(ComputeError):
    """Another request has taken the capacity of a chosen node; choose again."""

    def __init__(self, reasons: Sequence[str] = ()) -> None:
        """Create the error. `reasons`: one for each node that is out of capacity."""
        super().__init__(" ".join(reasons))
        self.reasons = tuple(reasons)


class VirtError(ComputeError):
    """The virtualization driver failed."""


class Unanswered(VirtError):
    """Another compute service did not answer in time: it may have done what it was asked for, or may yet do it."""


class NetworkError(ComputeError):
    """The network of a host could not be configured."""


class NetworkUnavailable(ComputeError):
    """The network host does not answer; try again later."""


class ZoneLoop(ComputeError):
    """The request has returned to a zone that it has been in: a child zone leads to one of its parents."""


class ZoneUnavailable(ComputeError):
    """A child zone does not answer."""
