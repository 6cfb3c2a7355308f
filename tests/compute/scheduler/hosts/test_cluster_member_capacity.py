"""A node that is a cluster takes only what one of its members has room for."""

from dataclasses import replace
from typing import Any

import pytest

from climate.compute.scheduler.filters.capacity import AGGREGATE_RAM, RAM
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.scheduler_parts import Options
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL, kept

THREE = [[4, 6144, 60], [4, 3072, 60], [0, 3072, 60]]


def summed(slots: list[Any], **changes: Any) -> Hosts:
    """A cluster with 12 GB free in all, and an ordinary node of the same size."""
    sizes = {"memory_mb": 16384, "used_ram_mb": 4096, "ram_ratio": 1.0, "reserved_ram_mb": 0, "local_gb": 400}
    told = {"cluster": {"slots": slots, "taken_ram_mb": 4096}}
    return hosts({**sizes, "stats": told, **changes}, sizes)


@pytest.mark.parametrize("rule", [RAM, AGGREGATE_RAM])
@pytest.mark.parametrize(
    ("vcpus", "ram_mb", "disk_gb", "stays"),
    [
        (1, 6144, 1, True),
        (1, 6145, 1, False),
        (4, 3072, 60, True),
        (5, 3072, 1, False),
        (1, 3072, 61, False),
        (0, 3072, 1, True),
        (1, 0, 0, True),
    ],
)
def test_a_server_must_fit_one_member(rule: Any, vcpus: int, ram_mb: int, disk_gb: int, stays: bool) -> None:
    spec = replace(SMALL, vcpus=vcpus, ram_mb=ram_mb, disk_mb=disk_gb * 1024)
    assert kept(rule, summed(THREE), spec) == [stays, True]


def test_what_was_promised_since_the_report_takes_its_slots() -> None:
    spec = replace(SMALL, ram_mb=3072)
    table = summed(THREE)
    fits = []
    for _ in range(4):
        fits.append(bool(RAM.keep(table, spec, Options())[0]))
        table.consume(0, spec)
    assert fits == [True, True, True, False]


def test_the_reason_names_what_is_free_in_one_piece() -> None:
    assert RAM.why is not None
    said = RAM.why(summed(THREE), replace(SMALL, ram_mb=8000), Options(), 0)
    assert said == (
        "has no member with 8000 MB of ram, 1 vcpus and 1024 MB of disk free in one piece; "
        "the most ram that one has free is 6144 MB."
    )


@pytest.mark.parametrize(
    "said", [None, 7, "x", {}, {"slots": 1, "taken_ram_mb": 0}, {"slots": [[1]], "taken_ram_mb": 0}]
)
def test_a_statistic_of_that_name_that_is_none_is_passed_over(said: Any) -> None:
    assert kept(RAM, summed([], stats={"cluster": said})) == [True, True]


def test_a_cluster_without_members_takes_nothing() -> None:
    assert kept(RAM, summed([])) == [False, True]
