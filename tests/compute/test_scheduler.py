"""The filter scheduler's arithmetic, by the vectors of the specification."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.request import Placement, pools_of, read_zone
from climate.compute.scheduler.filters.capacity import enough_disk, enough_ram, enough_vcpus
from climate.compute.scheduler.filters.place import forced, in_zone, not_tried_yet
from climate.compute.scheduler.filters.reservation import in_reservation
from climate.compute.scheduler.select import select
from climate.compute.scheduler.snapshot import Hosts, take
from climate.compute.scheduler.weighers import normalised, weights

ROW = {
    "id": 1,
    "name": "a",
    "service_host": "h",
    "vcpus": 8,
    "memory_mb": 8192,
    "local_gb": 100,
    "used_vcpus": 0,
    "used_ram_mb": 0,
    "used_disk_mb": 0,
    "ram_ratio": 1.5,
    "cpu_ratio": 16.0,
    "disk_ratio": 1.0,
    "zone": None,
    "pool": None,
    "owner": None,
    "closed": False,
    "up": True,
}
SMALL = Placement("demo", 1, 512, 1024)


def hosts(*changes: dict[str, Any]) -> Hosts:
    return take([ROW | {"id": number, "name": f"n{number}"} | change for number, change in enumerate(changes, 1)])


@pytest.mark.parametrize(
    ("total", "used", "ratio", "stays"),
    [(1024, 1, 1.0, False), (1024, 0, 1.0, True), (2048, 3072, 2.0, True), (512, 0, 2.0, False)],
)
def test_memory_is_promised_by_its_ratio_but_never_to_one_server_alone(
    total: int, used: int, ratio: float, stays: bool
) -> None:
    table = hosts({"memory_mb": total, "used_ram_mb": used, "ram_ratio": ratio})
    assert enough_ram(table, replace(SMALL, ram_mb=1024)).tolist() == [stays]


@pytest.mark.parametrize(("vcpus", "used", "need", "stays"), [(4, 7, 1, True), (4, 8, 1, False), (1, 0, 2, False)])
def test_vcpus_are_promised_by_their_ratio(vcpus: int, used: int, need: int, stays: bool) -> None:
    table = hosts({"vcpus": vcpus, "used_vcpus": used, "cpu_ratio": 2.0})
    assert enough_vcpus(table, replace(SMALL, vcpus=need)).tolist() == [stays]


@pytest.mark.parametrize(
    ("need_mb", "total_gb", "free_gb", "ratio", "stays"),
    [
        (2 * 1024 + 512, 13, 11, 1.0, True),
        (11 * 1024 + 1024, 13, 11, 1.0, False),
        (118 * 1024 + 1024, 12, 11, 10.0, True),
        (119 * 1024 + 1024, 12, 11, 10.0, False),
    ],
)
def test_disk_is_promised_by_its_ratio(need_mb: int, total_gb: int, free_gb: int, ratio: float, stays: bool) -> None:
    table = hosts({"local_gb": total_gb, "used_disk_mb": 1024 * (total_gb - free_gb), "disk_ratio": ratio})
    assert enough_disk(table, replace(SMALL, disk_mb=need_mb)).tolist() == [stays]


def test_more_free_memory_weighs_more_from_zero_on() -> None:
    table = hosts({"memory_mb": 7466}, {"memory_mb": 3434})
    assert weights(table, np.array([True, True])) == pytest.approx([1.0, 0.459951781409])
    four = normalised(np.array([512.0, 1024.0, 3072.0, 8192.0]), floor=0.0)
    assert four == pytest.approx([0.0625, 0.125, 0.375, 1.0])
    assert normalised(np.array([-512.0, 512.0, 8192.0]), floor=0.0)[:2] == pytest.approx([0.0, 0.11764705])
    assert normalised(np.array([5.0, 5.0])).tolist() == [0.0, 0.0]


def test_a_group_spreads_because_each_pick_is_counted_before_the_next() -> None:
    table = hosts({}, {"memory_mb": 8000})
    assert [pick.node_id for pick in select(table, replace(SMALL, ram_mb=1024), 3)] == [1, 2, 1]


def test_a_refusal_names_the_filter_that_left_none() -> None:
    with pytest.raises(NoValidHost, match="filter 'disk'"):
        select(hosts({}, {"up": False}), replace(SMALL, disk_mb=1 << 30), 1)
    with pytest.raises(NoValidHost, match="filter 'compute'"):
        select(hosts({"up": False}), SMALL, 1)
    with pytest.raises(NoValidHost, match="filter 'nodes'"):
        select(hosts(), SMALL, 1)


def test_zones_and_tried_nodes() -> None:
    table = hosts({}, {"zone": "az2"})
    assert in_zone(table, SMALL).tolist() == [True, True]
    assert in_zone(table, replace(SMALL, zone="nova")).tolist() == [True, False]
    assert in_zone(table, replace(SMALL, zone="az2")).tolist() == [False, True]
    assert not_tried_yet(table, replace(SMALL, tried=(1,))).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", (None,) * 3), ("az", ("az", None, None)), ("az:h", ("az", "h", None)), ("az::n", ("az", None, "n"))],
)
def test_a_zone_may_name_host_and_node(text: str, parts: tuple[str | None, ...]) -> None:
    assert read_zone(text) == parts


def test_a_forced_node_skips_all_filters_but_that_of_reservations() -> None:
    table = hosts({"memory_mb": 1, "up": False}, {"pool": "freepool"})
    assert forced(table, replace(SMALL, force_node="n1")).tolist() == [True, False]
    assert [pick.node_id for pick in select(table, replace(SMALL, force_node="n1"), 1)] == [1]
    with pytest.raises(NoValidHost, match="reservation"):
        select(table, replace(SMALL, force_node="n2"), 1)
    with pytest.raises(BadRequest):
        read_zone("a:b:c:d")


POOLS: tuple[dict[str, Any], ...] = (
    {},
    {"pool": "freepool"},
    {"pool": "r1", "owner": "demo"},
    {"pool": "r2", "owner": "other"},
)


@pytest.mark.parametrize(
    ("project", "named", "stays"),
    [
        ("demo", (), [1]),
        ("demo", ("r1",), [3]),
        ("other", ("r1",), []),
        ("other", ("r1", "r2"), [4]),
        ("demo", ("freepool",), []),
        ("demo", ("no such",), []),
        ("demo", ("",), []),
    ],
)
def test_lent_nodes_are_for_their_project_and_its_hint_alone(
    project: str, named: tuple[str, ...], stays: list[int]
) -> None:
    table = hosts(*POOLS)
    mask = in_reservation(table, replace(SMALL, project_id=project, pools=named))
    assert table.ids[mask].tolist() == stays


def test_a_closed_pool_takes_nobody() -> None:
    table = hosts({"pool": "r1", "owner": "demo", "closed": True})
    assert not in_reservation(table, replace(SMALL, pools=("r1",))).any()


def test_the_hint_is_a_text_or_a_list_of_texts() -> None:
    assert pools_of({}) == ()
    assert pools_of({"reservation": "a"}) == ("a",)
    assert pools_of({"reservation": ["a", "b"]}) == ("a", "b")
    with pytest.raises(BadRequest):
        pools_of({"reservation": {"a": 1}})
