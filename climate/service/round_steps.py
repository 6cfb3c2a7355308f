"""Steps of rounds: an item that fails is logged and counted, and keeps no other from its turn."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from sqlalchemy import exc

from climate.cloud import CloudError, Fenced, NotYet
from climate.domain.errors import ClimateError, DiskFull, NoVerdict, Unavailable, UnreadableLease
from climate.store import db_errors

EXPECTED = (ClimateError, CloudError, Fenced, NotYet, UnreadableLease)
"""Errors that are logged without a traceback."""

log = structlog.get_logger(__name__)


def is_its_own(error: Exception) -> bool:
    """Return whether an error may come from the rows of one item, not from the database or the connection."""
    if isinstance(error, db_errors.ERRORS):
        return isinstance(error, exc.IntegrityError | exc.DataError)
    return not isinstance(error, Unavailable | OSError)


def stops_all(error: Exception) -> bool:
    """Return whether the next item would fail by the same error: the database or another service does not answer.

    A transaction that lost its conflicts with others concerns its item alone.
    """
    if is_its_own(error):
        return False
    if isinstance(error, DiskFull | NoVerdict):
        return True
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    return not (isinstance(cause, exc.DBAPIError) and db_errors.is_clash(cause))


@dataclass
class RoundSteps:
    """Steps of one round, or of one part of it."""

    failure: str
    """Event of the log for an item that fails."""
    failed: int = 0
    """Number of items that failed so far."""

    def item(self, **names: object) -> "RoundStep":
        """Return the step of one item, as a context manager; the log has an error of it with these names."""
        return RoundStep(self, names)


@dataclass(frozen=True, slots=True)
class RoundStep:
    """Step of a round: logs and counts an error of its item, and raises one that would stop all."""

    steps: RoundSteps
    names: Mapping[str, object]

    def __enter__(self) -> None:
        """Begin the step."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Return whether the round goes on after an error."""
        if not isinstance(error, Exception) or stops_all(error):
            return False
        self.steps.failed += 1
        if isinstance(error, EXPECTED):
            cause = error.__cause__ if isinstance(error, UnreadableLease) and error.__cause__ else error
            log.warning(self.steps.failure, reason=str(cause) or type(cause).__name__, **self.names)
        else:
            log.error(self.steps.failure, exc_info=error, **self.names)
        return True
