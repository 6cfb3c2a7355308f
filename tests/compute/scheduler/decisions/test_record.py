"""The trail of a decision: what it tells, and that it stays small."""

import json
from dataclasses import replace

import numpy as np
import pytest

from climate.compute.errors import NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Group, Spec
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.filters.capacity import DISK, RAM
from climate.compute.scheduler.filters.location import COMPUTE
from climate.compute.scheduler.hosts.table import Hosts, Mask
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules
from climate.compute.scheduler.weighers import IO_OPS, WEIGHERS
from climate.compute.scheduler.weighers import RAM as BY_RAM
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL

RULES = Rules((COMPUTE, RAM, DISK), (BY_RAM, IO_OPS))


def test_a_placement_tells_what_each_filter_removed_and_why_and_what_was_weighed() -> None:
    spec = replace(SMALL, ram_mb=4096, zone="nova", flavor=Flavor("f", "big", 1, 4096, 1), ignore_hosts=("h9",))
    rows = [{"up": False}, {"memory_mb": 2048}, {"memory_mb": 10240, "io_ops": 2}, {}, {"service_host": "h9"}]
    asked = {"servers": 1, "vcpus": 1, "ram_mb": 4096, "disk_mb": 1024}
    chosen = {"host": "h", "node": "n4", "raw": [8192.0, 0.0], "normalised": [0.8, 0.0], "weight": 0.8}
    other = {"host": "h", "node": "n3", "raw": [10240.0, 2.0], "normalised": [1.0, 1.0], "weight": 0.0}
    away = {"host": "h", "node": "n1", "why": "has not been heard from in a while, or is in maintenance."}
    why = "does not have 4096 MB usable ram before overcommit, it only has 2048.0 MB."
    assert select(hosts(*rows), spec, 1, RULES).trail == {
        "asked": asked | {"flavor": "big", "zone": "nova", "ignore_hosts": ["h9"]},
        "hosts": 5,
        "considered": 4,
        "filters": [
            {"name": "ComputeFilter", "start": 4, "end": 3, "removed": [away]},
            {"name": "RamFilter", "start": 3, "end": 2, "removed": [{"host": "h", "node": "n2", "why": why}]},
            {"name": "DiskFilter", "start": 2, "end": 2, "removed": []},
        ],
        "weighers": [{"name": "RAMWeigher", "multiplier": 1.0}, {"name": "IoOpsWeigher", "multiplier": -1.0}],
        "weighed": [chosen, other],
        "picks": [chosen],
    }


def test_a_build_tells_which_nodes_fell_out_before_each_server() -> None:
    trail = select(hosts({"ram_ratio": 1.0}, {"memory_mb": 8000}), replace(SMALL, ram_mb=5000), 2, RULES).trail
    assert [pick["node"] for pick in trail["picks"]] == ["n1", "n2"]
    why = "does not have 5000 MB usable ram, it only has 3192.0 MB usable ram."
    removed = [{"host": "h", "node": "n1", "why": why}]
    assert trail["picks"][1] == {
        "host": "h",
        "node": "n2",
        "raw": [],
        "normalised": [],
        "weight": 0.0,
        "filters": [{"name": "RamFilter", "start": 2, "end": 1, "removed": removed}],
    }
    assert "filters" not in trail["picks"][0]


def test_a_refusal_carries_the_trail_up_to_the_filter_that_left_none() -> None:
    with pytest.raises(NoValidHost) as refused:
        select(hosts({}, {"up": False}), replace(SMALL, ram_mb=10**6), 1, RULES)
    trail = refused.value.trail
    assert trail["refused"] == "RamFilter"
    assert [(stage["name"], stage["start"], stage["end"]) for stage in trail["filters"]] == [
        ("ComputeFilter", 2, 1),
        ("RamFilter", 1, 0),
    ]
    assert trail["picks"] == []


def test_every_reason_is_of_the_moment_when_the_filter_was_asked() -> None:
    trail = select(hosts({"used_ram_mb": 12000}, {}), SMALL, 9, RULES).trail
    assert trail["filters"][1]["removed"][0]["why"] == (
        "does not have 512 MB usable ram, it only has 288.0 MB usable ram."
    )


def one_in_fifty(table: Hosts, spec: Spec, options: Options) -> Mask:
    """Fewer nodes with each server of the group."""
    servers = len(spec.group.nodes) if spec.group else 0
    return np.asarray(table.ids > servers * 50, dtype=np.bool_)


def test_the_trail_of_a_large_build_is_bounded_and_plain_json() -> None:
    table = hosts(*[{}] * 2600, *[{"up": False}] * 300)
    shrinking = Filter("Shrinking", one_in_fifty, Again.ALL)
    spec = replace(SMALL, group=Group("g", "anti-affinity"))
    trail = select(table, spec, 50, Rules((*FILTERS, shrinking), WEIGHERS)).trail
    compute = next(stage for stage in trail["filters"] if stage["name"] == "ComputeFilter")
    assert (compute["start"], compute["end"], len(compute["removed"])) == (2900, 2600, 100)
    assert len(trail["weighed"]) == 100
    assert sum(len(stage["removed"]) for pick in trail["picks"] for stage in pick.get("filters", ())) == 1000
    trail = select(hosts(*[{}] * 1200), replace(spec, ram_mb=256), 1100, Rules(FILTERS, WEIGHERS)).trail
    assert (len(trail["picks"]), trail["more_picks"]) == (1000, 100)
    text = json.dumps(trail, allow_nan=False)
    assert json.loads(text) == trail
    assert len(text) < 600_000
