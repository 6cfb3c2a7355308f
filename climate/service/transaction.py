"""The unit of work: one transaction, tried again where that is safe and may help."""

from collections.abc import Callable
from threading import Event as Pause
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from climate.connections import alone
from climate.context import Climate
from climate.domain.errors import DiskFull, Unavailable, Undecided
from climate.store import db_errors, locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import TryPatiently
from climate.store.locks import HostsInUse

T = TypeVar("T")
Act = Callable[[Connection, bool], T]

TRIES = 4
LONGEST_PAUSE = 0.05
RESTARTS = 20

QUICK_TRIES = 3
"""How often it is tried without waiting for hosts; between two tries somebody else has to be done with one."""


def work(climate: Climate, act: Act[T], *, keep: bool = True) -> T:
    """Run `act(conn, patient)` in a transaction; commit, or with `keep` false roll back.

    It is first run impatiently and, where it raises TryPatiently, again once its rivals are done,
    a few times at most, then with patience; and anew where it meets hosts out of order.  Clashes and broken
    connections are tried again a few times, then Unavailable.  Any error leaves nothing behind, but
    Undecided: the commit itself was under way, and nobody knows whether it was done.
    """
    for turn in range(TRIES + 1):
        try:
            return _beside_rivals(climate, act, keep)
        except _InCommit as error:
            raise Undecided() from error.__cause__
        except SQLAlchemyError as error:
            if db_errors.disk_full(error):
                raise DiskFull() from error
            if not db_errors.passing(error):
                raise
            if turn == TRIES or not isinstance(error, DBAPIError):
                raise Unavailable() from error
            Pause().wait(LONGEST_PAUSE * climate.chance())
    raise Unavailable()


def _beside_rivals(climate: Climate, act: Act[T], keep: bool) -> T:
    """Run `act` without patience while that may succeed, then with patience."""
    for _ in range(QUICK_TRIES):
        try:
            return _in_order(climate, act, False, keep)
        except TryPatiently as hurdle:
            if not _outlasted(climate, hurdle):
                break
    return _in_order(climate, act, True, keep)


def _outlasted(climate: Climate, hurdle: TryPatiently) -> bool:
    with alone(climate.engine) as conn:
        return hosts.outlast(conn, hurdle)


def _in_order(climate: Climate, act: Act[T], patient: bool, keep: bool) -> T:
    """Start again, a few times, where the hosts that `act` needs are not locked in order; Busy when that is in vain."""
    ahead: frozenset[int] = frozenset()
    for _ in range(RESTARTS):
        try:
            return _once(climate, lambda conn: act(conn, patient), ahead, keep)
        except HostsInUse as error:
            ahead |= error.numbers
    return _once(climate, lambda conn: act(conn, patient), ahead, keep)


class _InCommit(Exception):
    """The connection broke while the commit was under way."""


def _once(climate: Climate, act: Callable[[Connection], T], ahead: frozenset[int], keep: bool) -> T:
    with climate.engine.connect() as conn:
        transaction = conn.begin()
        if ahead:
            locks.expect_hosts(conn, ahead)
        answer = act(conn)
        if not keep:
            transaction.rollback()
            return answer
        try:
            transaction.commit()
        except DBAPIError as error:
            if error.connection_invalidated:
                raise _InCommit from error
            raise
        return answer
