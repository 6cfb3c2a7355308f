"""Transactions of the engine: `run(climate, function, *args)`, with retries where these are safe and useful."""

from collections.abc import Callable
from functools import partial
from threading import Event as Pause
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from climate.context import Climate
from climate.database.connections import alone
from climate.domain.errors import DiskFull, Unavailable, Undecided
from climate.store import db_errors, locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import MustWait
from climate.store.locks import HostsInUse

T = TypeVar("T")
Args = TypeVarTuple("Args")

TRIES = 4
LONGEST_PAUSE = 0.05
RESTARTS = 20

QUICK_TRIES = 3
"""Number of attempts without waiting for hosts; each ends when a concurrent transaction is done with one."""


def run(climate: Climate, function: Callable[[Connection, *Args], T], *args: *Args, keep: bool = True) -> T:
    """Run `function(conn, *args)` in a transaction; commit, or with `keep` false roll back.

    The function runs again if it meets hosts out of order. Clashes and broken connections are retried a few times,
    then Unavailable is raised. An error leaves nothing behind, except Undecided: the connection broke during the
    commit, so its result is unknown.
    """
    return _with_retries(climate, partial(_in_order, climate, function, args, keep))


def allocate(climate: Climate, function: Callable[[Connection, bool, *Args], T], *args: *Args, keep: bool = True) -> T:
    """Run `function(conn, patient, *args)` like `run`, at first without waiting for locks.

    If that raises TryPatiently, the function runs again once its rivals are done, a few times at most, and then with
    `patient` true.
    """
    return _with_retries(climate, partial(_beside_rivals, climate, function, args, keep))


def allocate_some(
    climate: Climate, function: Callable[[Connection, bool, *Args], T], *args: *Args, keep: bool = True
) -> T:
    """Run `function(conn, patient, *args)` like `run`, for a function that handles shortages itself.

    If it raises TryPatiently without patience, it runs once more with patience, so that it sees each shortage.
    """
    return _with_retries(climate, partial(_quickly_or_patiently, climate, function, args, keep))


def _with_retries(climate: Climate, attempt: Callable[[], T]) -> T:
    for turn in range(TRIES + 1):
        try:
            return attempt()
        except _InCommit as error:
            raise Undecided() from error.__cause__
        except SQLAlchemyError as error:
            if db_errors.disk_full(error):
                raise DiskFull() from error
            if not db_errors.is_transient(error):
                raise
            if turn == TRIES or not isinstance(error, DBAPIError):
                raise Unavailable() from error
            Pause().wait(LONGEST_PAUSE * climate.chance())
    raise Unavailable()


def _beside_rivals(
    climate: Climate, function: Callable[[Connection, bool, *Args], T], args: tuple[*Args], keep: bool
) -> T:
    """Run the function without patience while that may succeed, then with patience."""
    for _ in range(QUICK_TRIES):
        try:
            return _in_order(climate, function, (False, *args), keep)
        except MustWait as hurdle:
            if not _outlasted(climate, hurdle):
                break
    return _in_order(climate, function, (True, *args), keep)


def _quickly_or_patiently(
    climate: Climate, function: Callable[[Connection, bool, *Args], T], args: tuple[*Args], keep: bool
) -> T:
    try:
        return _in_order(climate, function, (False, *args), keep)
    except MustWait:
        return _in_order(climate, function, (True, *args), keep)


def _outlasted(climate: Climate, refusal: MustWait) -> bool:
    with alone(climate.engine) as conn:
        return hosts.wait_for_lock_holder(conn, refusal)


def _in_order(climate: Climate, function: Callable[[Connection, *Args], T], args: tuple[*Args], keep: bool) -> T:
    """Restart a few times if the hosts that the function needs are not locked in order; then raise Busy."""
    ahead: frozenset[int] = frozenset()
    for _ in range(RESTARTS):
        try:
            return _once(climate, partial(_with_hosts, ahead, function, args), keep)
        except HostsInUse as error:
            ahead |= error.numbers
    return _once(climate, partial(_with_hosts, ahead, function, args), keep)


def _with_hosts(
    ahead: frozenset[int], function: Callable[[Connection, *Args], T], args: tuple[*Args], conn: Connection
) -> T:
    if ahead:
        locks.expect_hosts(conn, ahead)
    return function(conn, *args)


class _InCommit(Exception):
    """The connection broke during the commit."""


def _once(climate: Climate, function: Callable[[Connection], T], keep: bool) -> T:
    with climate.engine.connect() as conn:
        transaction = conn.begin()
        answer = function(conn)
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
