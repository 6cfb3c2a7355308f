"""The filters, by the vectors of the specification, and why they remove a host."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from climate.compute.errors import BadRequest
from climate.compute.models.request import Group, Spec, pools_of, read_zone
from climate.compute.scheduler.filters import affinity, capacity, images, load, location
from climate.compute.scheduler.filters.reservation import RESERVATION
from climate.compute.scheduler.scheduler_parts import Filter, Options
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import OPTIONS, SMALL, kept, labels, limit


@pytest.mark.parametrize(
    ("total", "used", "ratio", "stays"),
    [(1024, 1, 1.0, False), (1024, 0, 1.0, True), (2048, 3072, 2.0, True), (512, 0, 2.0, False)],
)
def test_memory_is_promised_by_its_ratio_but_never_to_one_server_alone(
    total: int, used: int, ratio: float, stays: bool
) -> None:
    table = hosts({"memory_mb": total, "used_ram_mb": used, "ram_ratio": ratio})
    assert kept(capacity.RAM, table, replace(SMALL, ram_mb=1024)) == [stays]
    assert limit(capacity.RAM, table) == ("memory_mb", total * ratio)


def test_the_ratios_make_the_limits() -> None:
    table = hosts({"memory_mb": 10240, "vcpus": 8, "local_gb": 100})
    assert limit(capacity.RAM, table) == ("memory_mb", 15 * 1024)
    assert limit(capacity.CORE, table) == ("vcpu", 128)
    assert limit(capacity.DISK, table) == ("disk_gb", 100)


@pytest.mark.parametrize(
    ("vcpus", "used", "need", "stays"),
    [(4, 7, 1, True), (4, 8, 1, False), (1, 0, 2, False), (0, 0, 1, True)],
)
def test_vcpus_are_promised_by_their_ratio(vcpus: int, used: int, need: int, stays: bool) -> None:
    table = hosts({"vcpus": vcpus, "used_vcpus": used, "cpu_ratio": 2.0})
    assert kept(capacity.CORE, table, replace(SMALL, vcpus=need)) == [stays]


def test_the_least_ratio_of_the_aggregates_is_held_and_nonsense_is_passed_over() -> None:
    busy = {"vcpus": 4, "used_vcpus": 8, "cpu_ratio": 2.0}
    three = labels({"cpu_allocation_ratio": "3"})
    both = labels({"cpu_allocation_ratio": "2"}, {"cpu_allocation_ratio": "3"})
    nonsense = labels({"cpu_allocation_ratio": "3"}, {"cpu_allocation_ratio": "XXX"})
    table = hosts(busy | three, busy | both, busy | nonsense, busy)
    assert kept(capacity.AGGREGATE_CORE, table) == [True, False, False, False]
    assert limit(capacity.AGGREGATE_CORE, table) == ("vcpu", 12)
    assert limit(capacity.AGGREGATE_CORE, table.row(1)) == ("vcpu", 8)
    full = {"memory_mb": 1024, "used_ram_mb": 1024, "ram_ratio": 1.0}
    table = hosts(full | labels({"ram_allocation_ratio": "2.0"}), full)
    assert kept(capacity.AGGREGATE_RAM, table) == [True, False]
    assert limit(capacity.AGGREGATE_RAM, table) == ("memory_mb", 2048)


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
    assert kept(capacity.DISK, table, replace(SMALL, disk_mb=need_mb)) == [stays]
    assert limit(capacity.DISK, table) == ("disk_gb", total_gb * ratio)


def test_the_least_of_several_values_is_the_least_number() -> None:
    table = hosts(labels({"n": "10"}, {"n": "9"}), labels({"m": "1"}))
    assert capacity.least(table, "n", np.full(2, 7.0)).tolist() == [9.0, 7.0]


def test_aggregates_name_a_ratio_of_disk() -> None:
    node = {"local_gb": 1, "used_disk_mb": -2048}
    table = hosts(node | labels({"disk_allocation_ratio": "2"}), node)
    assert kept(capacity.AGGREGATE_DISK, table, replace(SMALL, disk_mb=4096)) == [True, False]


def test_a_whole_machine_is_exactly_what_was_asked_for() -> None:
    table = hosts({"memory_mb": 512, "local_gb": 1, "vcpus": 1}, {})
    for rule in (capacity.EXACT_RAM, capacity.EXACT_DISK, capacity.EXACT_CORE):
        assert kept(rule, table) == [True, False]


@pytest.mark.parametrize(
    ("rule", "change", "says"),
    [
        (
            capacity.RAM,
            {"memory_mb": 8192, "used_ram_mb": 7168, "ram_ratio": 1.0},
            "does not have 4096 MB usable ram, it only has 1024.0 MB usable ram.",
        ),
        (
            capacity.RAM,
            {"memory_mb": 1024},
            "does not have 4096 MB usable ram before overcommit, it only has 1024.0 MB.",
        ),
        (capacity.CORE, {"vcpus": 2}, "does not have 4 usable vcpus, it only has 2.0 usable vcpus."),
        (
            capacity.DISK,
            {"local_gb": 1},
            "does not have 4096 MB usable disk, it only has 1024.0 MB usable disk.",
        ),
        (load.IO_OPS, {"io_ops": 8}, "has 8 io ops, and the maximum is 8."),
        (location.AVAILABILITY_ZONE, {"zone": "az2"}, "is in availability zone az2, not in az1."),
        (location.COMPUTE, {"disabled": True}, "is disabled."),
        (location.COMPUTE, {"up": False}, "has not been heard from in a while, or is in maintenance."),
    ],
)
def test_a_filter_says_why(rule: Filter, change: dict[str, Any], says: str) -> None:
    table, spec = hosts({}, change), Spec("demo", 4, 4096, 4096, zone="az1")
    assert kept(rule, table, spec)[1] is False
    assert rule.why is not None
    assert rule.why(table, spec, OPTIONS, 1) == says


def test_zones_come_from_aggregates_then_from_the_node_then_from_the_settings() -> None:
    table = hosts(
        {}, {"zone": "az2"}, {"zone": "az2"} | labels({"availability_zone": "az1, az3"}, {"availability_zone": "az4"})
    )
    asked = {
        zone: kept(location.AVAILABILITY_ZONE, table, replace(SMALL, zone=zone))
        for zone in ("nova", "az2", "az3", "az4")
    }
    assert asked == {
        "nova": [True, False, False],
        "az2": [False, True, False],
        "az3": [False, False, True],
        "az4": [False, False, True],
    }
    assert kept(location.AVAILABILITY_ZONE, table) == [True, True, True]
    other = Options(default_zone="az2")
    assert kept(location.AVAILABILITY_ZONE, table, replace(SMALL, zone="az2"), other) == [True, True, False]


def test_an_aggregate_may_name_the_default_zone() -> None:
    table = hosts(labels({"availability_zone": "nova"}), labels({"availability_zone": "nova,nova2"}))
    assert kept(location.AVAILABILITY_ZONE, table, replace(SMALL, zone="nova")) == [True, True]
    assert kept(location.AVAILABILITY_ZONE, table, replace(SMALL, zone="bad")) == [False, False]


def test_nodes_that_were_tried_and_services_that_are_away() -> None:
    assert kept(location.RETRY, hosts({}, {}), replace(SMALL, tried=(1,))) == [False, True]
    assert kept(location.COMPUTE, hosts({}, {"up": False}, {"disabled": True})) == [True, False, False]
    assert kept(location.ALL_HOSTS, hosts({}, {"up": False})) == [True, True]


def test_near_an_address() -> None:
    table = hosts({"host_ip": "10.8.1.1"}, {"host_ip": "10.8.2.1"}, {"host_ip": ""})
    asked = replace(SMALL, hints={"build_near_host_ip": "10.8.1.100"})
    assert kept(location.CIDR, table, asked) == [True, False, False]
    assert kept(location.CIDR, table, replace(asked, hints=asked.hints | {"cidr": "/32"})) == [False] * 3
    assert kept(location.CIDR, table, replace(asked, hints=asked.hints | {"cidr": "/16"})) == [True, True, False]
    assert kept(location.CIDR, table) == [True] * 3
    with pytest.raises(BadRequest, match="not an address and a prefix"):
        kept(location.CIDR, table, replace(asked, hints={"build_near_host_ip": "here"}))


def test_groups_are_spread_or_kept_together() -> None:
    table = hosts({}, {}, {})
    group = Group("g", "anti-affinity", {2: 1})
    assert kept(affinity.APART, table, replace(SMALL, group=group)) == [True, False, True]
    two = replace(SMALL, group=replace(group, nodes={1: 1, 2: 2}, most=2))
    assert kept(affinity.APART, table, two) == [True, False, True]
    assert kept(affinity.TOGETHER, table, replace(SMALL, group=group)) == [True] * 3
    near = replace(group, policy="affinity")
    assert kept(affinity.TOGETHER, table, replace(SMALL, group=near)) == [False, True, False]
    assert kept(affinity.APART, table, replace(SMALL, group=near)) == [True] * 3
    for rule in (affinity.APART, affinity.TOGETHER):
        assert kept(rule, table) == [True] * 3
        assert kept(rule, table, replace(SMALL, group=replace(near, nodes={}))) == [True] * 3


def test_the_same_host_or_a_different_one() -> None:
    table = hosts({"used_servers": 1}, {"used_servers": 1}, {})
    same, different = replace(SMALL, same_host=frozenset({1})), replace(SMALL, different_host=frozenset({1}))
    assert kept(affinity.SAME_HOST, table, same) == [True, False, True]
    assert kept(affinity.DIFFERENT_HOST, table, different) == [False, True, True]
    for rule in (affinity.SAME_HOST, affinity.DIFFERENT_HOST):
        assert kept(rule, table) == [True] * 3
    assert kept(affinity.TYPE_AFFINITY, table, replace(SMALL, other_flavors=frozenset({1, 3}))) == [
        False,
        True,
        False,
    ]


def test_a_node_takes_so_many_servers_and_so_much_work() -> None:
    table = hosts({"io_ops": 7, "used_servers": 49}, {"io_ops": 8, "used_servers": 50})
    assert kept(load.IO_OPS, table) == [True, False]
    assert kept(load.NUM_INSTANCES, table) == [True, False]
    eight, nine = (
        labels({"max_io_ops_per_host": "8", "max_instances_per_host": "50"}),
        {"io_ops": 7, "used_servers": 49},
    )
    tight = Options(max_io_ops_per_host=7, max_instances_per_host=49)
    table = hosts(nine | eight, nine)
    assert kept(load.AGGREGATE_IO_OPS, table, SMALL, tight) == [True, False]
    assert kept(load.AGGREGATE_NUM_INSTANCES, table, SMALL, tight) == [True, False]


def test_isolated_images_and_hosts() -> None:
    table = hosts({"service_host": "iso"}, {"service_host": "free"})
    options = Options(isolated_images=frozenset({"img"}), isolated_hosts=frozenset({"iso"}))
    isolated, other = replace(SMALL, image_id="img"), replace(SMALL, image_id="other")
    assert kept(images.ISOLATED_HOSTS, table, isolated, options) == [True, False]
    assert kept(images.ISOLATED_HOSTS, table, other, options) == [False, True]
    loose = replace(options, restrict_isolated=False)
    assert kept(images.ISOLATED_HOSTS, table, isolated, loose) == [True, False]
    assert kept(images.ISOLATED_HOSTS, table, other, loose) == [True, True]
    assert kept(images.ISOLATED_HOSTS, table) == [True, True]
    no_images = replace(options, isolated_images=frozenset())
    assert kept(images.ISOLATED_HOSTS, table, other, no_images) == [False, True]
    assert kept(images.ISOLATED_HOSTS, table, other, replace(no_images, restrict_isolated=False)) == [True, True]


POOLS: tuple[dict[str, Any], ...] = (
    {},
    {"pool": "freepool"},
    {"pool": "r1", "owner": "demo"},
    {"pool": "r2", "owner": "other"},
    {"pool": "r3", "owner": "demo", "closed": True},
)


@pytest.mark.parametrize(
    ("project", "named", "stays"),
    [
        ("demo", (), [1]),
        ("demo", ("r1",), [3]),
        ("demo", ("r1", "r3"), [3]),
        ("demo", ("r3",), []),
        ("other", ("r1",), []),
        ("other", ("r1", "r2"), [4]),
        ("demo", ("freepool",), []),
        ("demo", ("no such",), []),
        ("demo", ("",), []),
    ],
)
def test_allocated_nodes_are_for_their_project_and_its_hint_alone(
    project: str, named: tuple[str, ...], stays: list[int]
) -> None:
    answer = kept(RESERVATION, hosts(*POOLS), replace(SMALL, project_id=project, pools=named))
    assert [number for number, stay in enumerate(answer, 1) if stay] == stays


def test_the_hint_is_a_text_or_a_list_of_texts() -> None:
    assert pools_of({}) == ()
    assert pools_of({"reservation": "a"}) == ("a",)
    assert pools_of({"reservation": ["a", "b"]}) == ("a", "b")
    with pytest.raises(BadRequest):
        pools_of({"reservation": {"a": 1}})


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", (None,) * 3), ("az", ("az", None, None)), ("az:h", ("az", "h", None)), ("az::n", ("az", None, "n"))],
)
def test_a_zone_may_name_host_and_node(text: str, parts: tuple[str | None, ...]) -> None:
    assert read_zone(text) == parts


def test_a_zone_has_no_more_than_three_parts() -> None:
    with pytest.raises(BadRequest, match="Unable to parse availability_zone"):
        read_zone("a:b:c:d")
