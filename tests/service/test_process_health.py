"""Health of processes by their last work; tests/api/test_ops.py has that of pollers and workers over HTTP."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from climate.context import Climate
from climate.service import housekeeping, process_health
from climate.service.process_health import CELLS, CELLS_BEAT, Check
from tests.conftest import Clock


def cells_of(climate: Climate) -> Sequence[Check]:
    """The checks of the cells processes."""
    with climate.engine.connect() as conn:
        return [one for one in process_health.checks(conn, climate, climate.now(conn)) if one.name == "cells"]


def test_c4_a_missing_cells_process_is_reported_with_what_to_do(climate: Climate, clock: Clock) -> None:
    here = replace(climate, settings=replace(climate.settings, cells_enable=True))
    (never,) = cells_of(here)
    assert (never.ok, "run `climate cells`" in never.detail) == (False, True)
    housekeeping.show_life(here, "cells:host:1", CELLS)
    assert [one.ok for one in cells_of(here)] == [True]
    clock.time += timedelta(seconds=CELLS_BEAT + 1)
    (gone,) = cells_of(here)
    assert (gone.ok, "start `climate cells`" in gone.detail) == (False, True)


def test_c1_without_cells_no_cells_process_is_expected(climate: Climate) -> None:
    assert cells_of(climate) == []
