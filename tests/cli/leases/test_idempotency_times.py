"""Repetitions under an idempotency key have the times of the first request."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from climate.cli.leases.idempotency_times import DAY, RequestTimes
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

LEASES = "/reservation/v1/leases"
NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
CREATE = ("lease", "create", "one", "--hosts", "1", "--idempotency-key", "k")


def test_a_key_has_the_time_of_its_first_use(tmp_path: Path) -> None:
    times = RequestTimes(tmp_path / "requests")
    assert times.first("a", NOW) == NOW
    assert times.first("a", NOW + timedelta(hours=1)) == NOW
    assert times.first("b", NOW + timedelta(hours=1)) == NOW + timedelta(hours=1)
    times.forget("a")
    assert times.first("a", NOW + timedelta(hours=1)) == NOW + timedelta(hours=1)


def test_times_of_past_days_are_deleted_and_no_folder_is_no_error(tmp_path: Path) -> None:
    times = RequestTimes(tmp_path)
    times.first("a", NOW)
    (path,) = tmp_path.iterdir()
    os.utime(path, (time.time() - 2 * DAY,) * 2)
    times.first("b", NOW)
    assert not path.exists()
    assert RequestTimes.of({}).first("a", NOW) == NOW


@pytest.mark.parametrize("options", [("--for", "2h"), ("--start", "+1h", "--end", "+3h"), ("--end", "+6h")])
def test_a_repetition_sends_the_same_request_later(cli: Cli, wire: Wire, options: tuple[str, ...]) -> None:
    sent = []
    for minutes in (0, 7):
        wire.ahead = timedelta(minutes=minutes)
        assert cli(*CREATE, *options).code == 0
        sent.append(wire.sent("POST", LEASES).body)
    assert sent[0] == sent[1]
    assert cli(*CREATE[:-1], "other", *options).code == 0
    assert wire.sent("POST", LEASES).body["end_date"] != sent[0]["end_date"]


def test_a_refused_request_is_a_new_one_when_it_is_repeated(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    wire.refused_leases = 1
    assert cli(*CREATE, "--for", "2h").code == 5
    first = wire.sent("POST", LEASES).body
    wire.ahead = timedelta(minutes=7)
    assert cli(*CREATE, "--for", "2h").code == 0
    assert wire.sent("POST", LEASES).body["end_date"] > first["end_date"]
