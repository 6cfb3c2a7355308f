"""Output of the demo on a terminal: steps under way, and waits that count on."""

import io
import time

from rich.console import Console

from climate.cli.demo.screen import Screen, Wait


def test_a_wait_counts_on_between_looks() -> None:
    began = time.monotonic() - 3600
    assert str(Wait("waiting for the lease", began).__rich__()).startswith("waiting for the lease (36")


def test_a_terminal_shows_a_step_while_it_is_verified() -> None:
    file = io.StringIO()
    screen = Screen(Console(file=file, width=200, force_terminal=True))
    screen.begins("Everything runs")
    screen.waiting("the stack", "starting")
    screen.done("Everything runs", "ready")
    assert "Everything runs" in file.getvalue()
    assert "waiting for the stack: starting" in file.getvalue()


def test_without_a_terminal_a_step_under_way_is_not_shown() -> None:
    file = io.StringIO()
    screen = Screen(Console(file=file, width=200, force_terminal=False))
    screen.begins("Everything runs")
    screen.close()
    assert file.getvalue() == ""
