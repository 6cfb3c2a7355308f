"""Free space: readiness fails where a disk below CLIMATE_HOME is full, also in processes that wrote nothing."""

from pathlib import Path

import pytest

from climate.service.disk_space import DATABASE, REMEMBERED, TOO_LITTLE, DiskWatch


@pytest.mark.parametrize(
    ("free", "reason"),
    [
        ({}, None),
        ({"": TOO_LITTLE, DATABASE: TOO_LITTLE}, None),
        ({"": TOO_LITTLE - 1}, "at CLIMATE_HOME:"),
        ({DATABASE: 0}, f"0 MB are free at CLIMATE_HOME/{DATABASE}:"),
    ],
)
def test_a_full_disk_of_home_or_database_fails_the_check(
    tmp_path: Path, free: dict[str, int], reason: str | None
) -> None:
    rooms = {tmp_path / name: room for name, room in free.items()}
    check = DiskWatch(tmp_path, free=rooms.get).check()
    assert check.ok == (reason is None)
    assert (reason or "enough space" if not free else reason or "are free") in check.detail


def test_a_failed_write_counts_for_a_minute(tmp_path: Path) -> None:
    now = [100.0]
    disk = DiskWatch(tmp_path, free=lambda _: None, now=lambda: now[0])
    disk.note("the disk of the database")
    assert not disk.check().ok
    now[0] += REMEMBERED
    assert disk.check().ok
