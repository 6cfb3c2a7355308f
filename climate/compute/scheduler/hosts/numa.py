"""NUMA cells of nodes, and whether the cells of guests fit on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from climate.compute.placement.flavor_demands import GuestCell

CELLS = "numa_cells"
"""Where a node's stats have its cells: a list of {"cpus": number, "memory_mb": number}."""

Guest = Sequence[GuestCell]


@dataclass(slots=True)
class Cell:
    """A cell of a node, and what of it is promised."""

    cpus: float
    memory_mb: float
    most_cpus: float
    most_memory_mb: float
    """What may be promised, by the node's ratios."""

    def takes(self, guest: GuestCell) -> bool:
        """Return whether a guest's cell fits; one cell never gets more than the node's has, whatever the ratio."""
        alone = guest.cpus <= self.cpus and guest.memory_mb <= self.memory_mb
        return alone and guest.cpus <= self.most_cpus and guest.memory_mb <= self.most_memory_mb

    def promise(self, guest: GuestCell) -> None:
        self.most_cpus -= guest.cpus
        self.most_memory_mb -= guest.memory_mb


def sizes(stats: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return (cpus, MB of memory) of each cell that a node reports; none where its stats have no sound list."""
    told = stats.get(CELLS)
    try:
        return [(float(one["cpus"]), float(one["memory_mb"])) for one in told] if isinstance(told, list) else []
    except (KeyError, TypeError, ValueError):
        return []


def fit(cells: Sequence[tuple[float, float]], guests: Sequence[Guest], ratios: tuple[float, float]) -> bool:
    """Return whether all guests have their cells, one guest after the other, each cell of a guest on another cell.

    `ratios`: how often CPUs and memory may be promised.
    """
    cpu_ratio, ram_ratio = ratios
    free = [Cell(cpus, memory, cpus * cpu_ratio, memory * ram_ratio) for cpus, memory in cells]
    return all(_placed(free, guest) for guest in guests)


def _placed(free: Sequence[Cell], guest: Guest) -> bool:
    """Promise the cells of one guest; False when they have no place, and then nothing is promised."""
    # The fullest first, so that large guests still find empty cells.
    order = sorted(range(len(free)), key=lambda place: free[place].most_memory_mb)
    taken: dict[int, int] = {}
    if not all(_augmented(free, guest, number, (order, taken, set())) for number in range(len(guest))):
        return False
    for place, number in taken.items():
        free[place].promise(guest[number])
    return True


def _augmented(
    free: Sequence[Cell], guest: Guest, number: int, state: tuple[Sequence[int], dict[int, int], set[int]]
) -> bool:
    """Find a cell for one of the guest's, moving others of the same guest where that makes room."""
    order, taken, seen = state
    for place in order:
        if place in seen or not free[place].takes(guest[number]):
            continue
        seen.add(place)
        if place not in taken or _augmented(free, guest, taken[place], state):
            taken[place] = number
            return True
    return False
