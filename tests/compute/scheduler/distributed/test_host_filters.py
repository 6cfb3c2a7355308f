"""Host filters by the vectors of the specification, on its ten hosts; where forms differ, the later one holds."""

import json
from dataclasses import replace
from typing import Any

import pytest

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed.host_filters import chosen, matching
from climate.compute.scheduler.distributed.json_query import parse
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.scheduler_parts import Options, Rules
from tests.compute.node_tables import hosts

STATS: dict[int, dict[str, Any]] = {
    7: {"xpu_arch": "fermi", "xpu_info": "Tesla 2050"},
    8: {"xpu_arch": "radeon"},
    9: {"xpu_arch": "fermi", "xpu_info": "Tesla 2150"},
    10: {"slots": 4, "fan": {"speed": {"rpm": 0}}, "quiet": True},
}
OPTIONS = Options()
RULES = Rules((), ())
ALL = list(range(1, 11))


@pytest.fixture
def ten() -> Hosts:
    """Host n has 10·n MB and 100·n GB free, whatever it has in all."""
    free = [(10 * number, 100 * number) for number in ALL]
    return hosts(
        *[
            {
                "memory_mb": 1000,
                "used_ram_mb": 1000 - ram,
                "local_gb": 2000,
                "used_disk_mb": 1024 * (2000 - disk),
                "stats": STATS.get(number, {}),
            }
            for number, (ram, disk) in enumerate(free, 1)
        ]
    )


def spec(ram_mb: int = 50, disk_gb: int = 500, extra: dict[str, str] | None = None, **wanted: Any) -> Spec:
    flavor = Flavor("f", "f", 1, ram_mb, disk_gb, extra_specs=extra or {})
    return Spec("demo", 1, ram_mb, 1024 * disk_gb, flavor=flavor, **wanted)


def kept(table: Hosts, asked: Spec) -> list[int]:
    rule = chosen(asked, RULES)
    return list(table.ids[rule.keep(table, asked, OPTIONS)].tolist())


def passing(table: Hosts, query: object) -> list[int]:
    return list(table.ids[matching(table, parse(json.dumps(query)))].tolist())


def test_all_hosts_is_the_filter_that_is_taken_when_none_is_named(ten: Hosts) -> None:
    assert kept(ten, spec()) == ALL


def test_a_size_needs_memory_and_disk(ten: Hosts) -> None:
    asked = spec(host_filter="InstanceTypeFilter")
    assert kept(ten, asked) == [5, 6, 7, 8, 9, 10]
    assert kept(ten, replace(asked, ram_mb=80)) == [8, 9, 10]
    assert kept(ten, replace(asked, disk_mb=1024 * 900 + 1)) == [10]


@pytest.mark.parametrize(
    ("extra", "stay"),
    [
        ({"xpu_arch": "fermi"}, [7, 9]),
        ({"xpu_arch": "fermi", "xpu_info": "Tesla 2050"}, [7]),
        ({"xpu_arch": "FERMI"}, []),
        ({"missing": "fermi"}, []),
        ({"slots": "4"}, []),
        ({"quiet": "True"}, []),
    ],
)
def test_extra_specs_are_stats_exactly_and_in_their_type(ten: Hosts, extra: dict[str, str], stay: list[int]) -> None:
    assert kept(ten, spec(extra=extra, host_filter="InstanceTypeFilter")) == stay


def test_a_size_is_a_query_too(ten: Hosts) -> None:
    for ram_mb, disk_gb, stay in ((50, 500, [5, 6, 7, 8, 9, 10]), (80, 100, [8, 9, 10]), (10, 1000, [10]), (0, 0, ALL)):
        assert passing(ten, ["and", [">=", FREE, ram_mb], [">=", DISK, disk_gb]]) == stay
        assert kept(ten, spec(ram_mb, disk_gb, host_filter="JsonFilter")) == stay


def test_the_hint_asks_for_more_than_the_size_and_never_for_less(ten: Hosts) -> None:
    hint = {"query": '["or", ["=", "$compute.xpu_arch", "fermi"], ["<", "$compute.host_memory_free", 30]]'}
    assert kept(ten, spec(host_filter="JsonFilter", hints=hint)) == [7, 9]


FREE, DISK = "$compute.host_memory_free", "$compute.disk_available"
SMALL_OR_LARGE = ["or", ["and", ["<", FREE, 30], ["<", DISK, 300]], ["and", [">", FREE, 70], [">", DISK, 700]]]


@pytest.mark.parametrize(
    ("query", "stay"),
    [
        (
            ["or", ["and", ["<", FREE, 30], ["<", DISK, 300]], ["and", [">", FREE, 70], [">", DISK, 700]]],
            [1, 2, 8, 9, 10],
        ),
        (["in", FREE, 20, 40, 60, 80, 100], [2, 4, 6, 8, 10]),
        (["not", ["=", FREE, 30]], [1, 2, 4, 5, 6, 7, 8, 9, 10]),
        (["=", "$compute.xpu_arch", "fermi"], [7, 9]),
        (["in", "$compute.xpu_info", "Tesla 2150", "Tesla 2250"], [9]),
        ([], ALL),
        ({}, ALL),
        (["not", True, False, True, False], ALL),
        # An operator with too few arguments, and one whose variable no host has.
        (["="], []),
        (["=", FREE], []),
        (["<", "$compute.missing", 5], []),
        (["=", "$", 5], []),
        (["=", "$network.host_memory_free", 10], []),
        # 2011: `and` and `or` looked for the literals False and True; later, and here, for what is truthy.
        (["and", ["not", True, False]], ALL),
        (["or", ["not", True, False]], ALL),
        # 2011: 0 counted as missing; later, and here, only nothing does.
        (["=", "$compute.fan.speed.rpm", 0], [10]),
        (["=", "$compute.fan.speed.rpm.sub", 0], []),
    ],
)
def test_queries(ten: Hosts, query: object, stay: list[int]) -> None:
    assert passing(ten, query) == stay


def test_an_unknown_operator_is_refused_before_anything_is_scheduled(ten: Hosts) -> None:
    with pytest.raises(BadRequest, match="unknown operator"):
        kept(ten, spec(host_filter="JsonFilter", hints={"query": '["unknown command"]'}))


def test_only_filters_of_the_list_can_be_named() -> None:
    with pytest.raises(BadRequest, match=r"Scheduler Host Filter os\.system could not be found"):
        chosen(spec(host_filter="os.system"), RULES)


def test_why_a_host_is_left_out_is_reported(ten: Hosts) -> None:
    def why(place: int, asked: Spec) -> str:
        rule = chosen(asked, RULES)
        assert rule.why is not None
        return rule.why(ten, asked, OPTIONS, place)

    sized, queried = spec(host_filter="InstanceTypeFilter"), spec(host_filter="JsonFilter")
    assert why(0, sized) == why(0, queried) == "has 10 MB of memory and 100 GB of disk free."
    assert why(7, sized) == "has the stats {'xpu_arch': 'radeon'}."
    assert why(7, queried) == "does not match the query."
