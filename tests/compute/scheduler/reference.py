"""The filter scheduler in the plainest words: objects and loops, every rule asked of every node for every server.

Straight from cloud.md C.3 to C.5, and slow.  What the real one answers must be what this one answers.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from climate.compute.models.request import Spec
from climate.compute.scheduler.filters.extra_specs_ops import match
from climate.compute.scheduler.scheduler_parts import Options


@dataclass
class Node:
    """A node, as a row of the tests' table says it."""

    row: dict[str, Any]
    vcpus_used: float = 0
    ram_used: float = 0
    disk_used: float = 0
    servers: int = 0
    io_ops: int = 0

    def __post_init__(self) -> None:
        row = self.row
        self.vcpus_used, self.servers, self.io_ops = row["used_vcpus"], row["used_servers"], row["io_ops"]
        self.ram_used = row["used_ram_mb"] + row["reserved_ram_mb"]
        self.disk_used = row["used_disk_mb"] + row["reserved_disk_mb"]

    def metadata(self, key: str) -> list[str]:
        return [label.metadata[key] for label in self.row["labels"] if key in label.metadata]

    def words(self, key: str) -> set[str]:
        return {word.strip() for text in self.metadata(key) for word in text.split(",")}

    def least(self, key: str, otherwise: float) -> float:
        try:
            return min([float(text) for text in self.metadata(key)], default=otherwise)
        except ValueError:
            return otherwise


@dataclass
class Request:
    spec: Spec
    options: Options
    group: Counter[int] = field(default_factory=Counter)
    """Node -> servers of the group on it."""


Test = Callable[[Node, Request], bool]


def reservation(node: Node, request: Request) -> bool:
    pool, spec = node.row["pool"], request.spec
    if not spec.pools:
        return pool is None
    return pool in spec.pools and node.row["owner"] == spec.project_id and not node.row["closed"]


def retry(node: Node, request: Request) -> bool:
    return node.row["id"] not in request.spec.tried


def zone(node: Node, request: Request) -> bool:
    if request.spec.zone is None:
        return True
    own = node.row["zone"] or request.options.default_zone
    return request.spec.zone in (node.words("availability_zone") or {own})


def ram(node: Node, request: Request, ratio: float | None = None) -> bool:
    total, wanted = node.row["memory_mb"], request.spec.ram_mb
    if total < wanted:
        return False
    return total * (ratio or node.row["ram_ratio"]) - node.ram_used >= wanted


def disk(node: Node, request: Request) -> bool:
    return node.row["local_gb"] * 1024 * node.row["disk_ratio"] - node.disk_used >= request.spec.disk_mb


def core(node: Node, request: Request) -> bool:
    total, wanted = node.row["vcpus"], request.spec.vcpus
    if not total:
        return True
    return wanted <= total and total * node.row["cpu_ratio"] - node.vcpus_used >= wanted


def compute(node: Node, request: Request) -> bool:
    return node.row["up"] and not node.row["disabled"]


def capabilities(node: Node, request: Request) -> bool:
    for key, wanted in request.spec.flavor.extra_specs.items() if request.spec.flavor else ():
        scope, _, rest = key.rpartition(":")
        if scope in ("", "capabilities"):
            value = node.row["stats"].get(rest)
            if value is None or not match(str(value), wanted):
                return False
    return True


def image(node: Node, request: Request) -> bool:
    wanted = request.spec.image.get("architecture")
    return wanted is None or any(triple[0] == wanted for triple in node.row["supported"])


def apart(node: Node, request: Request) -> bool:
    group = request.spec.group
    return group is None or group.policy != "anti-affinity" or request.group[node.row["id"]] < group.most


def together(node: Node, request: Request) -> bool:
    group = request.spec.group
    return group is None or group.policy != "affinity" or not request.group or node.row["id"] in request.group


def aggregate_ram(node: Node, request: Request) -> bool:
    return ram(node, request, node.least("ram_allocation_ratio", node.row["ram_ratio"]))


def io_ops(node: Node, request: Request) -> bool:
    return node.io_ops < request.options.max_io_ops_per_host


def instances(node: Node, request: Request) -> bool:
    return node.servers < node.least("max_instances_per_host", request.options.max_instances_per_host)


def aggregate_specs(node: Node, request: Request) -> bool:
    for key, wanted in request.spec.flavor.extra_specs.items() if request.spec.flavor else ():
        scope, _, rest = key.rpartition(":")
        fits = [match(word, wanted) for word in node.words(rest)]
        if scope in ("", "aggregate_instance_extra_specs") and not any(fits):
            return False
    return True


def same_host(node: Node, request: Request) -> bool:
    wanted = request.spec.same_host
    return wanted is None or node.servers == 0 or node.row["id"] in wanted


def different_host(node: Node, request: Request) -> bool:
    return request.spec.different_host is None or node.row["id"] not in request.spec.different_host


def isolated(node: Node, request: Request) -> bool:
    options = request.options
    host, wanted = node.row["service_host"] in options.isolated_hosts, request.spec.image_id in options.isolated_images
    if not options.isolated_images:
        return not options.restrict_isolated or not host
    return host == wanted if options.restrict_isolated else not wanted or host


def query(node: Node, request: Request) -> bool:
    """The one query that the tests ask: that so much memory is free."""
    if "query" not in request.spec.hints:
        return True
    return bool(node.row["memory_mb"] - node.ram_used >= 2048)


TESTS: dict[str, tuple[Test, bool]] = {
    "ReservationFilter": (reservation, True),
    "RetryFilter": (retry, False),
    "AvailabilityZoneFilter": (zone, True),
    "RamFilter": (ram, False),
    "DiskFilter": (disk, False),
    "ComputeFilter": (compute, True),
    "ComputeCapabilitiesFilter": (capabilities, True),
    "ImagePropertiesFilter": (image, True),
    "ServerGroupAntiAffinityFilter": (apart, False),
    "ServerGroupAffinityFilter": (together, False),
    "CoreFilter": (core, False),
    "AggregateRamFilter": (aggregate_ram, False),
    "IoOpsFilter": (io_ops, False),
    "AggregateNumInstancesFilter": (instances, False),
    "AggregateInstanceExtraSpecsFilter": (aggregate_specs, True),
    "SameHostFilter": (same_host, True),
    "DifferentHostFilter": (different_host, True),
    "IsolatedHostsFilter": (isolated, True),
    "JsonFilter": (query, False),
}
"""Name -> what it asks, and whether it is asked for the first server only."""


def free_ram(node: Node, request: Request) -> float:
    return float(node.row["memory_mb"] - node.ram_used)


def work(node: Node, request: Request) -> float:
    return float(node.io_ops)


def metrics(node: Node, request: Request) -> float:
    reported, wanted = node.row["metrics"], request.options.metrics
    if any(name not in reported for name, _ in wanted):
        return request.options.weight_of_unavailable
    return float(sum(reported[name] * ratio for name, ratio in wanted))


def near(node: Node, request: Request) -> float:
    group = request.spec.group
    return float(request.group[node.row["id"]]) if group and group.policy == "soft-affinity" else 0.0


def far(node: Node, request: Request) -> float:
    group = request.spec.group
    return -float(request.group[node.row["id"]]) if group and group.policy == "soft-anti-affinity" else 0.0


WEIGHERS: dict[str, tuple[Callable[[Node, Request], float], Callable[[Options], float], float | None]] = {
    "RAMWeigher": (free_ram, lambda options: options.ram_multiplier, 0.0),
    "IoOpsWeigher": (work, lambda options: options.io_ops_multiplier, 0.0),
    "MetricsWeigher": (metrics, lambda options: options.metrics_multiplier, None),
    "ServerGroupSoftAffinityWeigher": (near, lambda options: options.soft_affinity_multiplier, None),
    "ServerGroupSoftAntiAffinityWeigher": (far, lambda options: options.soft_anti_affinity_multiplier, None),
}


def weigh(nodes: list[Node], request: Request, weighers: list[str]) -> list[float]:
    """The weight of each node; a single one is not weighed."""
    weights = [0.0] * len(nodes)
    for find, multiplier, floor in (WEIGHERS[name] for name in weighers) if len(nodes) > 1 else ():
        raw = [find(node, request) for node in nodes]
        low = min(raw) if floor is None else min([*raw, floor])
        high = max(raw)
        for place, value in enumerate(raw):
            part = 0.0 if high == low else (value - low) / (high - low)
            weights[place] += multiplier(request.options) * part
    return weights


@dataclass
class Answer:
    """Which nodes with which weights; or the filter that left none, after how many had been found."""

    picks: list[tuple[int, float]]
    refused: str | None = None


GROUPS = ["ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"]


def considered(nodes: list[Node], spec: Spec) -> list[Node]:
    left = [node for node in nodes if node.row["service_host"] not in spec.ignore_hosts]
    host, _, name = (spec.destination or "").partition(":")
    left = [node for node in left if host in ("", node.row["service_host"]) and name in ("", node.row["name"])]
    if spec.forced:
        left = [node for node in left if node.row["present"]]
    if spec.force_hosts:
        left = [node for node in left if {node.row["service_host"], node.row["name"]} & set(spec.force_hosts)]
    if spec.force_nodes:
        left = [node for node in left if node.row["name"] in spec.force_nodes]
    return left


def asked(spec: Spec, filters: list[str]) -> list[str]:
    """The filters that are asked: of a forced host the reservation's, and those that keep a group's policy."""
    if not spec.forced:
        return filters
    return ["ReservationFilter"] + GROUPS * (spec.group is not None)


def place(rows: list[dict[str, Any]], request: Request, count: int, filters: list[str], weighers: list[str]) -> Answer:
    """`count` servers, one after the other."""
    answer = Answer([])
    request.group = Counter(request.spec.group.nodes) if request.spec.group else Counter()
    left = considered([Node(row) for row in rows], request.spec)
    if not left:
        return Answer([], "hosts")
    for number in range(count):
        for name in asked(request.spec, filters):
            asks, once = TESTS[name]
            if number and once:
                continue
            left = [node for node in left if asks(node, request)]
            if not left:
                answer.refused = name
                return answer
        weights = weigh(left, request, weighers)
        best = max(range(len(left)), key=lambda place: (weights[place], -place))
        answer.picks.append((left[best].row["id"], weights[best]))
        take(left[best], request)
    return answer


def take(node: Node, request: Request) -> None:
    """Count one server on a node, and in the group."""
    spec = request.spec
    node.vcpus_used += spec.vcpus
    node.ram_used += spec.ram_mb
    node.disk_used += spec.disk_mb
    node.servers += 1
    node.io_ops += 1
    request.group[node.row["id"]] += 1
