"""Work on many items: what fails for one is logged and stops no other, unless the database is away."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from structlog.testing import capture_logs

from climate.compute import one_by_one
from climate.compute.errors import VirtError


def wrapped(cause: Exception, kind: type[DBAPIError] = OperationalError) -> DBAPIError:
    return kind("SELECT 1", {}, cause)


ONE_ITEM = [
    ValueError("a row that cannot be read"),
    TypeError("a flavor without vcpus"),
    VirtError("the driver does not work"),
    OSError("no such file"),
    wrapped(errors.DeadlockDetected()),
    wrapped(errors.LockNotAvailable()),
    wrapped(errors.QueryCanceled()),
    wrapped(errors.InvalidTextRepresentation(), DBAPIError),
    errors.UndefinedTable(),
]

ALL_ITEMS = [
    wrapped(psycopg.OperationalError("the connection is lost")),
    wrapped(psycopg.InterfaceError("the connection is closed"), InterfaceError),
    wrapped(errors.ConnectionFailure()),
    wrapped(errors.DiskFull()),
    wrapped(errors.TooManyConnections()),
    wrapped(errors.OutOfMemory()),
    wrapped(errors.AdminShutdown()),
    wrapped(errors.CannotConnectNow()),
    psycopg.OperationalError("the connection is lost"),
    PoolTimeout("no connection is free"),
]


def named(error: Exception) -> str:
    return f"{type(getattr(error, 'orig', None) or error).__name__}"


@pytest.mark.parametrize("error", ONE_ITEM, ids=named)
def test_the_failure_of_one_is_logged_with_its_name_and_stops_no_other(error: Exception) -> None:
    done: list[int] = []

    def act(number: int) -> None:
        if number == 2:
            raise error
        done.append(number)

    with capture_logs() as seen:
        failed = one_by_one.each("drain of servers", [1, 2, 3], act, lambda number: f"server-{number}")
    assert (done, failed) == ([1, 3], [2])
    assert [(one["item"], one["event"].partition(":")[0]) for one in seen] == [("server-2", "drain of servers")]


@pytest.mark.parametrize("error", ALL_ITEMS, ids=named)
def test_what_every_other_would_meet_is_raised_at_once(error: Exception) -> None:
    done: list[int] = []

    def act(number: int) -> None:
        done.append(number)
        raise error

    with pytest.raises(type(error)), capture_logs() as seen:
        one_by_one.each("drain of servers", [1, 2, 3], act)
    assert (done, seen) == ([1], [])


def test_steps_are_taken_in_order_and_those_that_failed_are_named() -> None:
    done: list[str] = []

    def fail() -> None:
        done.append("second")
        raise ValueError("broken")

    with capture_logs() as seen:
        failed = one_by_one.steps(
            "chores",
            [("first", lambda: done.append("first")), ("second", fail), ("third", lambda: done.append("third"))],
        )
    assert (done, failed) == (["first", "second", "third"], ["second"])
    assert [one["item"] for one in seen] == ["second"]


def test_a_reason_is_short_and_says_the_kind_of_error() -> None:
    def fail() -> None:
        raise ValueError("x" * 1000)

    with capture_logs():
        reason = one_by_one.attempt("chores", "first", fail)
    assert reason is not None
    assert reason.startswith("ValueError: xxx")
    assert len(reason) == one_by_one.LONGEST_REASON
    assert one_by_one.attempt("chores", "first", lambda: None) is None
