"""When a process that died begins again, and when it is given up; lines on the terminal that nobody takes."""

import os
from pathlib import Path

import pytest

from climate.embedded.spawn import Program
from climate.runner.console import Console, Lines
from climate.runner.managed_process import Child, RestartPolicy

PATIENCE = RestartPolicy(short=3, deaths=4, first_deaths=2, window=60, pause=1, longest=3)


def dying(*lives: tuple[float, float], ready: bool = True) -> list[tuple[float | None, bool]]:
    """For each life, from when to when: the pause that follows it, and whether it goes on."""
    child = Child(Program("one", ("true",), {}), 0)
    seen = []
    for began, died in lives:
        child.begun_at = began
        goes_on = child.died(died, PATIENCE, ready=ready)
        seen.append((child.next_at - died if child.next_at is not None else None, goes_on))
    return seen


def test_after_a_long_life_it_begins_again_at_once_however_often() -> None:
    assert dying(*[(start, start + 3) for start in range(0, 100, 5)]) == [(0, True)] * 20


def test_after_short_lives_the_pause_grows_until_it_is_given_up() -> None:
    assert dying((0, 1), (2, 3), (5, 6), (9, 10)) == [(1, True), (2, True), (3, True), (3, False)]


def test_short_lives_long_ago_are_forgiven() -> None:
    assert dying((0, 1), (2, 3), (5, 6), (100, 101)) == [(1, True), (2, True), (3, True), (1, True)]


def test_before_the_stack_was_ready_once_it_is_given_up_sooner() -> None:
    assert dying((0, 1), (2, 3), ready=False) == [(1, True), (2, False)]


@pytest.mark.parametrize("ready", [True, False])
def test_a_store_whose_disk_is_full_is_tried_until_there_is_space(tmp_path: Path, *, ready: bool) -> None:
    """A pseudo file system has no free bytes, and neither has a full disk."""
    full, roomy = (Child(Program("one", ("true",), {}, data=folder), 0) for folder in (Path("/proc"), tmp_path))
    assert (full.is_out_of_space, roomy.is_out_of_space) == (True, False)
    assert [full.died(1, PATIENCE, ready=ready) for _ in range(20)].count(True) == (20 if ready else 1)
    assert [roomy.died(1, PATIENCE, ready=ready) for _ in range(20)].count(True) == (3 if ready else 1)


def test_a_reader_that_is_stuck_loses_lines_and_holds_up_nobody() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as out:
        console = Console(out, colours=False)
        for number in range(2000):
            console.line("web", 0, f"{number} {'x' * 100}")
        first = os.read(reader, 2**20)
        console.line("web", 0, "last")
    after = os.read(reader, 2**20)
    os.close(reader)

    assert first.startswith(b"web      | 0 xxx")
    assert after.startswith(b"(")
    assert after.endswith(b"lines were dropped: the reader is too slow)\nweb      | last\n")


def test_a_reader_that_is_gone_holds_up_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        Console(out, colours=False).say("hello")


def test_output_is_cut_into_lines_whatever_it_is() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    lines = Lines(reader)
    seen = []
    for piece in (b"one\ntw", b"o\r\n\xff\n", b"x" * 60000, b"y" * 5536 + b"z", b"rest"):
        os.write(writer, piece)
        seen += lines.read()
    assert lines.read() == [], "nothing to read is not the end"
    os.close(writer)
    seen += lines.read()

    assert seen == ["one", "two", "\ufffd", "x" * 60000 + "y" * 5536 + "z", "rest"]
    assert lines.ended
