"""Tasks of the worker: their errors are logged and end no process."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from climate.domain.errors import DiskFull
from climate.service.disk_space import DiskWatch
from workers.tasks import _guarded


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("repeats", [1, 3])
def test_full_disk_is_logged_once_a_minute_and_seen_by_readiness(tmp_path: Path, repeats: int) -> None:
    disk = DiskWatch(tmp_path, now=lambda: 0.0)
    task = _guarded("climate.tend_pools", fail, disk)
    with capture_logs() as seen:
        for _ in range(repeats):
            task(DiskFull())
    assert [(one["disk"], one["log_level"]) for one in seen] == [("the disk of the database", "error")]
    assert not disk.check().ok


def test_other_errors_are_logged_with_the_task_and_its_arguments(tmp_path: Path) -> None:
    disk = DiskWatch(tmp_path)
    with capture_logs() as seen:
        _guarded("climate.tend_pools", fail, disk)(ValueError("x" * 100))
    assert [(one["event"], one["task"], one["args"]) for one in seen] == [
        ("task failed", "climate.tend_pools", ["x" * 60])
    ]
    assert disk.check().ok
