"""The unit of work: one transaction, tried again where the database says that this may help."""

from collections.abc import Callable
from threading import Event as Pause
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.store.availability import TryPatiently

T = TypeVar("T")

PASSING = frozenset({"40001", "40P01", "23P01", "57014", "55P03"})
"""SQLSTATEs of a clash with others: serialization, deadlock, exclusion, statement and lock time-outs."""

TRIES = 4
LONGEST_PAUSE = 0.05


def work(climate: Climate, act: Callable[[Connection, bool], T], *, keep: bool = True) -> T:
    """Run `act(conn, patient)` in a transaction; commit, or with `keep` false roll back.

    It is first run impatiently and, where it raises TryPatiently, once more
    with patience.  Clashes are tried again a few times; then, or when the
    database is away, Unavailable.  Any error leaves nothing behind.
    """
    patient = False
    for turn in range(TRIES + 1):
        try:
            with climate.engine.connect() as conn, conn.begin() as transaction:
                answer = act(conn, patient)
                if not keep:
                    transaction.rollback()
                return answer
        except TryPatiently:
            patient = True
        except PoolTimeout as error:
            raise Unavailable() from error
        except DBAPIError as error:
            if sqlstate(error) in PASSING and turn < TRIES:
                Pause().wait(LONGEST_PAUSE * climate.chance())
            elif sqlstate(error) in PASSING or error.connection_invalidated or isinstance(error, OperationalError):
                raise Unavailable() from error
            else:
                raise
    raise Unavailable()


def sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)
