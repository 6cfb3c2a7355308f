"""Sums over the servers of a project."""

from datetime import UTC, datetime

import pytest

from climate.compute.projects.usage import ProjectUsage, ServerUsage

START = datetime(2026, 1, 1, tzinfo=UTC)


def server(hours: float, vcpus: int, ram_mb: int, disk_mb: int) -> ServerUsage:
    return ServerUsage("s", "p", "n", "f", vcpus, ram_mb, disk_mb, START, None, "ACTIVE", hours, 0)


def test_hours_are_weighed_by_the_size_of_each_server() -> None:
    usage = ProjectUsage("p", (server(2.0, 1, 512, 1024), server(0.5, 4, 8192, 10 * 1024)))
    assert (usage.hours, usage.vcpu_hours, usage.mb_hours, usage.gb_hours) == (2.5, 4.0, 5120.0, 7.0)


@pytest.mark.parametrize(("disk_mb", "disk_gb"), [(0, 0), (1, 1), (1024, 1), (1025, 2)])
def test_a_part_of_a_gigabyte_counts_as_one(disk_mb: int, disk_gb: int) -> None:
    assert server(1.0, 1, 1, disk_mb).disk_gb == disk_gb
