"""NUMA cells of nodes, and the placement of guests' cells on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climate.compute.placement.numa_and_pci_requests import GuestCell

CELLS = "numa_cells"
"""Key of NUMA cells in a node's stats: a list of {"cpus": number, "memory_mb": number}."""

Guest = Sequence[GuestCell]


@dataclass(slots=True)
class Cell:
    """NUMA cell of a node, and its allocated share."""

    cpus: float
    memory_mb: float
    most_cpus: float
    most_memory_mb: float
    """Capacity with the node's overcommit ratios."""

    def takes(self, guest: GuestCell) -> bool:
        """Return whether a guest's cell fits; one cell never exceeds the node's cell, whatever the ratio."""
        alone = guest.cpus <= self.cpus and guest.memory_mb <= self.memory_mb
        return alone and guest.cpus <= self.most_cpus and guest.memory_mb <= self.most_memory_mb

    def promise(self, guest: GuestCell) -> None:
        self.most_cpus -= guest.cpus
        self.most_memory_mb -= guest.memory_mb


def sizes(stats: Mapping[str, object]) -> list[tuple[float, float]]:
    """Return (cpus, MB of memory) of each cell that a node reports; empty if its stats are malformed."""
    cells = stats.get(CELLS)
    try:
        return [(float(cell["cpus"]), float(cell["memory_mb"])) for cell in cells] if isinstance(cells, list) else []
    except (KeyError, TypeError, ValueError):
        return []


def fit(cells: Sequence[tuple[float, float]], guests: Sequence[Guest], ratios: tuple[float, float]) -> bool:
    """Return whether all guests fit, one after the other, with each cell of a guest on a different cell.

    `ratios`: overcommit ratios of CPUs and memory.
    """
    cpu_ratio, ram_ratio = ratios
    free = [Cell(cpus, memory, cpus * cpu_ratio, memory * ram_ratio) for cpus, memory in cells]
    return all(_placed(free, guest) for guest in guests)


def _placed(free: Sequence[Cell], guest: Guest) -> bool:
    """Allocate the cells of one guest; return False and allocate nothing if they do not fit."""
    # Fullest cells first, so that large guests still find empty ones.
    order = sorted(range(len(free)), key=lambda index: free[index].most_memory_mb)
    taken: dict[int, int] = {}
    if not all(_augmented(free, guest, number, (order, taken, set())) for number in range(len(guest))):
        return False
    for index, number in taken.items():
        free[index].promise(guest[number])
    return True


def _augmented(
    free: Sequence[Cell], guest: Guest, number: int, state: tuple[Sequence[int], dict[int, int], set[int]]
) -> bool:
    """Find a cell for one of the guest's, moving its other cells if needed (augmenting path)."""
    order, taken, seen = state
    for index in order:
        if index in seen or not free[index].takes(guest[number]):
            continue
        seen.add(index)
        if index not in taken or _augmented(free, guest, taken[index], state):
            taken[index] = number
            return True
    return False
