"""Every way to give hosts to demands, by trying all; slow and obviously right."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from climate.domain.hosts.matching import Demand
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Slots

Rooms = Mapping[int, Mapping[str, int]]


def options(host: int, demands: Sequence[Demand], rooms: Rooms) -> Iterator[tuple[int, ...]]:
    """All that a host can give: itself to one demand, or slots that fit into its room together."""
    yield (0,) * len(demands)
    for place, demand in enumerate(demands):
        if isinstance(demand, Whole) and host in demand.candidates:
            yield tuple(int(place == other) for other in range(len(demands)))
    counts = [
        range(demand.amount + 1) if isinstance(demand, Slots) and host in demand.candidates else (0,)
        for demand in demands
    ]
    for given in product(*counts):
        used: dict[str, int] = {}
        for count, demand in zip(given, demands, strict=True):
            if isinstance(demand, Slots):
                for name, part in demand.size.items():
                    used[name] = used.get(name, 0) + count * part
        if any(given) and all(part <= rooms[host].get(name, 0) for name, part in used.items() if part):
            yield given


def allowed(demand: Demand, given: Sequence[int], hosts: Sequence[int]) -> bool:
    """Whether a demand may have exactly this of each host."""
    if isinstance(demand, Whole):
        return demand.least <= sum(given) <= demand.most and all(given[hosts.index(host)] for host in demand.must)
    if any(given[hosts.index(host)] < count for host, count in demand.kept.items()):
        return False
    if demand.affinity is not None and demand.amount:
        spread = sum(1 for count in given if count)
        return sum(given) == demand.amount and (spread == 1 if demand.affinity else max(given) == 1)
    return sum(given) == demand.amount


def brute(demands: Sequence[Demand], rooms: Rooms) -> list[tuple[tuple[int, ...], ...]]:
    """Every assignment: for each demand, what it has of each host."""
    hosts = sorted(rooms)
    ways = product(*(list(options(host, demands, rooms)) for host in hosts))
    turned = (tuple(zip(*way, strict=True)) for way in ways)
    return [
        way for way in turned if all(allowed(demand, given, hosts) for demand, given in zip(demands, way, strict=True))
    ]


def fits(demands: Sequence[Demand], rooms: Rooms) -> bool:
    return bool(brute(demands, rooms))
