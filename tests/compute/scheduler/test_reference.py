"""On any cloud and request the scheduler answers what the plain reference answers: nodes, weights and refusals."""

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from climate.compute.errors import NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Group, Spec
from climate.compute.placement.server_groups import KEPT_BY
from climate.compute.scheduler import entry_points
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.hosts.table import Label
from climate.compute.scheduler.scheduler_parts import Options, Rules
from tests.campaign import length
from tests.compute.node_tables import ROW, hosts
from tests.compute.scheduler import reference

DEFAULT = [rule.name for rule in FILTERS]
WEIGHERS = list(reference.WEIGHERS)

METADATA = st.fixed_dictionaries(
    {},
    optional={
        "availability_zone": st.sampled_from(["nova", "az1,nova", "az1"]),
        "ram_allocation_ratio": st.sampled_from(["1.0", "2.0", "many"]),
        "max_instances_per_host": st.sampled_from(["1", "3"]),
        "ssd": st.sampled_from(["true", "true,false", "7"]),
    },
)
NODE = st.fixed_dictionaries(
    {
        "service_host": st.sampled_from(["h1", "h2", "h3"]),
        "vcpus": st.sampled_from([0, 2, 4, 8]),
        "memory_mb": st.sampled_from([512, 2048, 4096, 4096, 8192, 7466]),
        "local_gb": st.sampled_from([5, 10, 40]),
        "used_vcpus": st.sampled_from([0, 0, 1, 3]),
        "used_ram_mb": st.sampled_from([0, 0, 512, 3000, 9000]),
        "reserved_disk_mb": st.sampled_from([0, 0, 512]),
        "used_disk_mb": st.sampled_from([0, 0, 4096]),
        "reserved_ram_mb": st.sampled_from([0, 512]),
        "used_servers": st.sampled_from([0, 0, 1, 2]),
        "io_ops": st.sampled_from([0, 0, 0, 1, 2]),
        "ram_ratio": st.sampled_from([1.0, 1.5]),
        "cpu_ratio": st.sampled_from([1.0, 2.0]),
        "disk_ratio": st.sampled_from([1.0, 2.5]),
        "zone": st.sampled_from([None, None, None, "az2"]),
        "labels": st.lists(METADATA, max_size=2).map(
            lambda found: tuple(Label(number, f"a{number}", values) for number, values in enumerate(found))
        ),
        "pool": st.sampled_from([None] * 6 + ["freepool", "r1"]),
        "owner": st.sampled_from(["demo", "other"]),
        "closed": st.sampled_from([False, False, True]),
        "present": st.sampled_from([True] * 5 + [False]),
        "up": st.sampled_from([True] * 5 + [False]),
        "disabled": st.sampled_from([False] * 5 + [True]),
        "stats": st.sampled_from([{}, {"ssd": "true"}, {"ssd": 7}]),
        "supported": st.sampled_from([(("x86_64", "kvm", "hvm"),)] * 2 + [(), (("i686", "kvm", "hvm"),)]),
        "metrics": st.sampled_from([{}, {"idle": 10}, {"idle": 3.5}]),
    }
)
EXTRA = st.sampled_from([{}] * 4 + [{"ssd": "true"}, {"capabilities:ssd": "<or> true <or> 7"}, {"ssd": ">= 7"}])
FEW = st.frozensets(st.integers(1, 6), max_size=3)
SPEC = st.builds(
    Spec,
    project_id=st.just("demo"),
    vcpus=st.sampled_from([1, 1, 2]),
    ram_mb=st.sampled_from([256, 512, 1024, 2048]),
    disk_mb=st.sampled_from([0, 1024, 5120]),
    pools=st.sampled_from([()] * 12 + [("r1",)]),
    zone=st.sampled_from([None, None, None, None, "az1", "nova"]),
    force_hosts=st.sampled_from([()] * 12 + [("h1",), ("n2", "h3")]),
    force_nodes=st.sampled_from([()] * 12 + [("n1",), ("n1", "n2")]),
    destination=st.sampled_from([None] * 12 + ["h1", ":n2", "h2:n3"]),
    ignore_hosts=st.sampled_from([()] * 6 + [("h1",), ("h1", "h2")]),
    tried=st.sampled_from([()] * 5 + [(1,), (1, 2)]),
    flavor=st.builds(lambda extra: Flavor("f", "f", 1, 512, 1, extra_specs=extra), EXTRA),
    image_id=st.sampled_from([None, "img"]),
    image=st.sampled_from([{}, {}, {}, {"architecture": "x86_64"}]),
    hints=st.sampled_from([{}, {"query": json.dumps([">=", "$free_ram_mb", 2048])}]),
    group=st.none()
    | st.builds(
        Group,
        st.just("g"),
        st.sampled_from(list(KEPT_BY)),
        st.dictionaries(st.integers(1, 6), st.integers(1, 3), max_size=3),
        st.sampled_from([1, 1, 2]),
    ),
    same_host=st.none() | FEW,
    different_host=st.none() | FEW,
)
OPTIONS = st.builds(
    Options,
    ram_multiplier=st.sampled_from([1.0, -1.0, 0.0, 2.5]),
    io_ops_multiplier=st.sampled_from([-1.0, 0.3, 0.0]),
    soft_affinity_multiplier=st.sampled_from([1.0, 3.0]),
    soft_anti_affinity_multiplier=st.sampled_from([1.0, 3.0]),
    metrics=st.sampled_from([(), (("idle", 0.7),)]),
    metrics_required=st.just(False),
    max_io_ops_per_host=st.integers(1, 4),
    max_instances_per_host=st.integers(1, 5),
    isolated_hosts=st.sampled_from([frozenset(), frozenset({"h1"})]),
    isolated_images=st.sampled_from([frozenset(), frozenset({"img"})]),
    restrict_isolated=st.booleans(),
)
OTHERS = st.lists(st.sampled_from(sorted(reference.TESTS.keys() - set(DEFAULT))), unique=True, max_size=3)
CHAIN = st.builds(lambda others, at: [*DEFAULT[: 1 + at], *others, *DEFAULT[1 + at :]], OTHERS, st.integers(0, 10))


ALL = entry_points.rules(sorted(reference.TESTS), WEIGHERS, Options())
PARTS = {part.name: part for part in (*ALL.filters, *ALL.weighers)}


def answered(rows: list[dict[str, Any]], spec: Spec, count: int, rules: Rules) -> reference.Answer:
    """What the scheduler answers, by its plan or its refusal, which its trail must bear out."""
    try:
        plan = select(hosts(*rows), spec, count, rules)
    except NoValidHost as refusal:
        trail, refused, found = refusal.trail, refusal.trail["refused"], refusal.found
    else:
        trail, refused, found = plan.trail, None, len(plan.picks)
        assert [(pick.node, pick.weight) for pick in plan.picks] == [
            (pick["node"], pick["weight"]) for pick in trail["picks"]
        ]
    picks = [(int(pick["node"][1:]), pick["weight"]) for pick in trail["picks"]]
    assert len(picks) == found
    return reference.Answer(picks, refused)


@settings(max_examples=length(150, 700), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.integers(0, 9).flatmap(lambda size: st.lists(NODE, min_size=size, max_size=size)),
    spec=SPEC,
    count=st.integers(1, 8),
    chain=CHAIN,
    weighers=st.permutations(WEIGHERS).flatmap(lambda names: st.sampled_from([names, names[:1]])),
    options=OPTIONS,
)
def test_the_same_answers(
    rows: list[dict[str, Any]], spec: Spec, count: int, chain: list[str], weighers: list[str], options: Options
) -> None:
    full = [ROW | row | {"id": number, "name": f"n{number}"} for number, row in enumerate(rows, 1)]
    expected = reference.place(full, reference.Request(spec, options), count, chain, weighers)
    event(f"refused by {expected.refused} after {min(len(expected.picks), 2)}")
    rules = Rules(tuple(PARTS[name] for name in chain), tuple(PARTS[name] for name in weighers), options)
    assert answered(rows, spec, count, rules) == expected


@pytest.mark.parametrize(
    ("policy", "most", "refused"),
    [
        (None, 1, "RamFilter"),
        ("anti-affinity", 1, "ServerGroupAntiAffinityFilter"),
        ("anti-affinity", 2, "RamFilter"),
        ("soft-anti-affinity", 1, "RamFilter"),
    ],
)
def test_the_same_answers_for_a_large_build_that_fills_its_cloud(policy: str | None, most: int, refused: str) -> None:
    dice = random.Random(str(policy))
    rows = [
        {
            "memory_mb": dice.choice((8192, 16384, 20000)),
            "used_ram_mb": dice.randrange(0, 8000, 16),
            "vcpus": dice.choice((2, 4, 8)),
            "io_ops": dice.choice((0, 0, 1)),
            "up": dice.random() < 0.95,
            "zone": dice.choice((None, None, "az2")),
        }
        for _ in range(120)
    ]
    spec = Spec("demo", 1, 1500, 1024, zone="nova", group=Group("g", policy, most=most) if policy else None)
    full = [ROW | row | {"id": number, "name": f"n{number}"} for number, row in enumerate(rows, 1)]
    expected = reference.place(full, reference.Request(spec, Options()), 1000, DEFAULT, WEIGHERS)
    assert expected.refused == refused
    assert len(expected.picks) > 50
    assert answered(rows, spec, 1000, Rules(FILTERS, ALL.weighers)) == expected
