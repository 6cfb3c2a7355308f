"""Errors of cells, and the errors that may be sent from one cell to another."""

from collections.abc import Mapping

import structlog

from climate.compute import errors
from climate.compute.errors import ComputeError

log = structlog.get_logger(__name__)

LONGEST_TEXT = 2000
"""Maximum length of an error's text sent to another cell."""


class CellError(ComputeError):
    """A cell could not carry out the request."""


class CellNotFound(errors.NotFound):
    """The cell is not known."""


class CellExists(errors.Conflict):
    """A neighbour with this name exists already."""


class CellInUse(errors.Conflict):
    """The cell has servers, or builds wait for it."""


class CellRoutingInconsistency(CellError):
    """The message cannot be routed to its target cell."""


class CellMaxHopCountReached(CellError):
    """The message has passed through too many cells."""


class CellServiceAPIMethodNotFound(errors.NotFound):
    """The cell does not have this method."""


class CellTimeout(errors.NotFound):
    """Timeout waiting for response from cell"""


class NoCellsAvailable(CellError):
    """No cells available matching scheduling criteria."""


class InstanceUnknownCell(errors.NotFound):
    """The cell of the server is not known."""


class BadMessage(CellError):
    """The message is malformed."""


class Postpone(Exception):
    """Raised by a handler to get the message again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds} s")
        self.seconds = seconds


ALLOWED: Mapping[str, type[ComputeError]] = {
    kind.__name__: kind
    for kind in (
        CellError,
        CellNotFound,
        CellRoutingInconsistency,
        CellMaxHopCountReached,
        CellServiceAPIMethodNotFound,
        CellTimeout,
        NoCellsAvailable,
        InstanceUnknownCell,
        errors.BadRequest,
        errors.NotFound,
        errors.Forbidden,
        errors.Conflict,
        errors.Busy,
        errors.NoValidHost,
        errors.NoMoreAddresses,
        errors.NetworkUnavailable,
        errors.QuotaExceeded,
        errors.NoImageRoom,
    )
}
"""Error classes that a response may name; any other becomes a CellError."""


def encode(error: Exception, path: str) -> dict[str, str]:
    """Return the error in the form that is sent; an unexpected one is logged here and its text is not sent.

    A subclass of an allowed class is sent as that class.
    """
    name = next((kind.__name__ for kind in type(error).__mro__ if ALLOWED.get(kind.__name__) is kind), None)
    if name is None:
        log.error("cell method failed", cell=path, exc_info=error)
        return {"type": CellError.__name__, "message": f"The request failed in cell {path}."}
    return {"type": name, "message": str(error)[:LONGEST_TEXT]}


def decode(failure: Mapping[str, object], path: str) -> ComputeError:
    """Return the error of a response; an unknown class becomes a CellError."""
    kind = ALLOWED.get(str(failure.get("type")))
    text = str(failure.get("message") or "")[:LONGEST_TEXT]
    if kind is None:
        return CellError(f"The request failed in cell {path}: {text}")
    return kind(text)
