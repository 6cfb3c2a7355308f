"""Steps of rounds: an item that fails is logged and counted, and keeps no other from its turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from sqlalchemy import exc

from climate.cloud import CloudError, Fenced, NotYet
from climate.domain.errors import ClimateError, DiskFull, NoVerdict, Unavailable
from climate.store import db_errors

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

    @contextmanager
    def item(self, **names: object) -> Iterator[None]:
        """Log and count an error of this item, which the log has with these names; raise what would stop all."""
        try:
            yield
        except (ClimateError, CloudError, Fenced, NotYet) as error:
            if stops_all(error):
                raise
            self.failed += 1
            log.warning(self.failure, reason=str(error) or type(error).__name__, **names)
        except Exception as error:
            if stops_all(error):
                raise
            self.failed += 1
            log.exception(self.failure, **names)
