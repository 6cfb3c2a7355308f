"""The time limit of a live migration; tests/compute/virt/test_live_migration.py moves real guests."""

import pytest

from climate.compute.errors import VirtError
from climate.compute.virt.qemu import memory_transfer

BEGUN = 1_800_000_000.0


@pytest.mark.parametrize(("passed", "left"), [(0, 800), (300, 500), (800, 0), (900, -100), (-3600, 800)])
def test_a_migration_has_its_time_however_the_clock_is_set(passed: float, left: float) -> None:
    assert memory_transfer.seconds_left(800.0, BEGUN, BEGUN + passed) == left


def test_a_migration_past_its_time_is_an_error() -> None:
    memory_transfer.in_time(float("inf"), 800)
    with pytest.raises(VirtError, match="800"):
        memory_transfer.in_time(0.0, 800)
