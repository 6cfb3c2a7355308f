"""Choosing nodes by the filter scheduler: one server, and a build of a thousand, with the trail of the decision."""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.figures import head, line, spread
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Group, Spec
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.filters.aggregates import INSTANCE_EXTRA_SPECS
from climate.compute.scheduler.filters.capabilities import JSON
from climate.compute.scheduler.filters.capacity import AGGREGATE_CORE, AGGREGATE_RAM
from climate.compute.scheduler.hosts.table import Coded, Grouping, Hosts, Label, Pool, Profile
from climate.compute.scheduler.scheduler_parts import Options, Rules
from climate.compute.scheduler.weighers import WEIGHERS

NOVA = "Nova 34"
RULES = Rules(FILTERS, WEIGHERS)
SPEC = Spec("demo", 2, 4096, 20480, build_id="r-bench")


@dataclass(frozen=True)
class Case:
    """A request, and the rules of the scheduler."""

    what: str
    spec: Spec
    rules: Rules
    count: int
    target: str = ""
    nova: str = ""


def cloud(size: int, kinds: int) -> Hosts:
    """Return nodes in three sizes, up to 60 % used, a few of them away or lent, of `kinds` kinds and groupings."""
    dice = random.Random(7)
    ram = np.array([dice.choice((65536, 131072, 262144)) for _ in range(size)], dtype=np.float64)
    labels = [Label(kind, f"a{kind}", {"ssd": str(kind % 2 == 0).lower(), "rack": str(kind)}) for kind in range(kinds)]
    groupings = tuple(Grouping(f"az{kind % 3}", (label,)) for kind, label in enumerate(labels))
    supported = (("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm"))
    profiles = tuple(Profile("qemu", 6002000, '{"features": ["avx"]}', supported, {"gen": n}) for n in range(kinds))

    def kind() -> Any:
        return np.array([dice.randrange(kinds) for _ in range(size)], dtype=np.int32)

    def texts(of: Callable[[int], object]) -> Any:
        return np.array([of(place) for place in range(size)], dtype=object)

    return Hosts(
        ids=np.arange(1, size + 1),
        names=texts(lambda place: f"node-{place:05}"),
        service_hosts=texts(lambda place: f"host-{place // 4:05}"),
        host_ips=texts(lambda place: "10.0.0.1"),
        vcpus=np.full(size, 32.0),
        ram_mb=ram,
        disk_mb=np.full(size, 2_000_000.0),
        used_vcpus=np.zeros(size),
        used_ram_mb=np.floor(ram * np.array([dice.uniform(0, 0.6) for _ in range(size)])),
        used_disk_mb=np.zeros(size),
        servers=np.zeros(size),
        io_ops=np.array([float(dice.choice((0, 0, 0, 1, 2))) for _ in range(size)]),
        ram_ratio=np.full(size, 1.5),
        cpu_ratio=np.full(size, 16.0),
        disk_ratio=np.ones(size),
        present=np.ones(size, dtype=np.bool_),
        up=np.array([dice.random() > 0.02 for _ in range(size)]),
        disabled=np.zeros(size, dtype=np.bool_),
        pool=Coded(np.array([dice.random() < 0.1 for _ in range(size)], dtype=np.int32), (None, Pool("freepool"))),
        grouping=Coded(kind(), groupings),
        profile=Coded(kind(), profiles),
        metrics=texts(lambda place: {}),
    )


def cases() -> list[Case]:
    plain = Flavor("f", "plain", 2, 4096, 20)
    asking = replace(plain, extra_specs={"capabilities:gen": ">= 20", "capabilities:cpu_info:features": "<in> avx"})
    on_ssd = replace(plain, extra_specs={"aggregate_instance_extra_specs:ssd": "true"})
    image = {"architecture": "x86_64", "hypervisor_version_requires": ">=6.0"}
    free = {"query": '["and", [">=", "$free_ram_mb", 8192], ["=", "$hypervisor_type", "qemu"]]'}
    aggregates = Rules((*FILTERS, INSTANCE_EXTRA_SPECS, AGGREGATE_RAM, AGGREGATE_CORE), WEIGHERS)
    few = replace(RULES, options=Options(host_subset_size=10), chance=random.Random(7).randrange)
    apart = replace(SPEC, group=Group("g", "anti-affinity"))
    return [
        Case("one server", SPEC, RULES, 1, "3 ms at 10,000", "76 ms, 1.3 to 1.9 s"),
        Case("one, with extra specs and an image", replace(SPEC, flavor=asking, image=image), RULES, 1),
        Case("one, with aggregates' specs and ratios", replace(SPEC, flavor=on_ssd), aggregates, 1),
        Case("one, with a query in JSON", replace(SPEC, hints=free), Rules((*FILTERS, JSON), WEIGHERS), 1),
        Case("a build of 1,000", SPEC, RULES, 1000, "100 ms, 300 ms", "58 s, 950 s"),
        Case("the same, one of the ten best", SPEC, few, 1000),
        Case("the same, with aggregates", replace(SPEC, flavor=on_ssd), aggregates, 1000),
        Case("a build of 500, anti-affinity", apart, RULES, 500),
    ]


def main(short: bool) -> None:
    head("Choosing among nodes that are in memory: filters, weighers and trail; processor time, and wall time")
    for size in (1000, 10_000):
        nodes = cloud(size, 200)
        for case in cases():
            _measure(nodes, case, short)


def _measure(nodes: Hosts, case: Case, short: bool) -> None:
    times = (5 if short else 30) if case.count > 1 else (50 if short else 300)
    runs = [_run(nodes.copy(), case) for _ in range(times + 2)][2:]
    work, wall = spread([work for work, _ in runs]), spread([wall for _, wall in runs])
    peer = f"; {NOVA}: {case.nova}" if case.nova else ""
    what = f"{len(nodes):,} nodes, {case.what}"
    line(what, f"{work.median:.2f} ms, wall {wall}", f"{case.target}{peer}" if case.target else "")


def _run(nodes: Hosts, case: Case) -> tuple[float, float]:
    """(processor seconds, wall seconds) of one request."""
    work, wall = time.process_time(), time.perf_counter()
    select(nodes, case.spec, case.count, case.rules)
    return time.process_time() - work, time.perf_counter() - wall


if __name__ == "__main__":
    main("--short" in sys.argv)
