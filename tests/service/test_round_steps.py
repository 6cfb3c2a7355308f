"""Steps of rounds: an item that fails keeps no other from its turn, and a database that is away stops all."""

import pytest
import structlog
from sqlalchemy.exc import DataError, IntegrityError, OperationalError

from climate.cloud import CloudError, Fenced, NotYet
from climate.domain.errors import Conflict, DiskFull, NoVerdict, Unavailable, UnreadableLease
from climate.service.round_steps import RoundSteps
from climate.time_ordered_ids import time_ordered_id

BROKEN = (
    Conflict("taken"),
    CloudError("away"),
    NotYet("wait"),
    Fenced("late"),
    UnreadableLease(time_ordered_id()),
    KeyError("min"),
    TypeError("no object"),
    IntegrityError("INSERT", {}, Exception("twice")),
    DataError("SELECT", {}, Exception("no number")),
)


class _Lost(Exception):
    """An error of the driver with a SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def _unavailable(sqlstate: str) -> Unavailable:
    error = Unavailable()
    error.__cause__ = OperationalError("SELECT", {}, _Lost(sqlstate))
    return error


@pytest.mark.parametrize("error", [*BROKEN, _unavailable("55P03"), _unavailable("40P01")], ids=repr)
def test_an_item_that_fails_is_logged_and_counted(error: Exception) -> None:
    steps, done = RoundSteps("item failed"), []
    with structlog.testing.capture_logs() as lines:
        for number in (1, 2, 3):
            with steps.item(number=number):
                if number == 2:
                    raise error
                done.append(number)
    assert (done, steps.failed) == ([1, 3], 1)
    assert [(line["event"], line["number"]) for line in lines] == [("item failed", 2)]


@pytest.mark.parametrize(
    "error",
    [
        Unavailable(),
        _unavailable("57P01"),
        DiskFull(),
        NoVerdict(),
        OperationalError("SELECT", {}, Exception("server closed the connection")),
        ConnectionResetError(),
    ],
    ids=repr,
)
def test_what_stops_all_is_raised(error: Exception) -> None:
    steps = RoundSteps("item failed")
    with pytest.raises(type(error)), steps.item(number=1):
        raise error
    assert steps.failed == 0
