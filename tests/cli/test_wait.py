"""Progress of a wait on a terminal."""

import io
import time
from typing import Any

import pytest
from rich.console import Console

from climate.cli.connection.session import Session
from climate.cli.errors import NOT_ALLOWED, UNREACHABLE, Failure
from climate.cli.wait import Goal, Progress, wait


def rendered(progress: Progress) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(progress)
    return out.getvalue()


def test_each_rendering_counts_on_between_two_looks() -> None:
    progress = Progress("server one", time.monotonic() - 5)
    assert rendered(progress).startswith("server one (5 s)")
    progress.state, progress.began = "BUILD", time.monotonic() - 61
    assert rendered(progress).startswith("server one: BUILD (61 s)")


def looks(*answers: Any) -> Goal:
    """A goal that is reached when there is a resource; each look has the next answer, and raises it if it can."""
    left = list(answers)

    def look() -> dict[str, Any] | None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return dict(answer)

    return Goal("lease one", look, lambda thing: (thing or {}).get("status") == "ACTIVE")


def away() -> Failure:
    return Failure("it cannot be reached", UNREACHABLE, "is it running?")


def test_a_wait_outlasts_a_restart_of_the_server() -> None:
    goal = looks({"status": "PENDING"}, away(), {"status": "ACTIVE"})
    assert wait(Session({}), goal, 60) == {"status": "ACTIVE"}


def test_a_server_that_stays_away_ends_the_wait_and_not_the_lease() -> None:
    with pytest.raises(Failure) as ended:
        wait(Session({}), looks({"status": "PENDING"}, away()), 60, patience=0)
    assert (ended.value.code, ended.value.hint) == (UNREACHABLE, "is it running?; lease one stays as it was requested")


def test_another_failure_ends_the_wait_at_once() -> None:
    with pytest.raises(Failure, match="not allowed"):
        wait(Session({}), looks({"status": "PENDING"}, Failure("not allowed", NOT_ALLOWED), {"status": "ACTIVE"}), 60)


def test_an_interrupted_wait_says_that_the_lease_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        wait(Session({}), looks(KeyboardInterrupt()), 60)
    assert "only the wait has ended: lease one stays" in capsys.readouterr().err
