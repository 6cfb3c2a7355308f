"""Demands of a flavor on a node beyond its size: NUMA cells for the guest, and PCI devices."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from climate.compute.errors import BadRequest

NUMA_NODES, PCI_ALIAS = "hw:numa_nodes", "pci_passthrough:alias"
KEYS = (NUMA_NODES, PCI_ALIAS)
"""The extra specs that make such demands."""

MOST_CELLS, MOST_CPU = 64, 4095


@dataclass(frozen=True, slots=True)
class GuestCell:
    """A NUMA cell of a guest; it gets its CPUs and MB of memory from one cell of the node."""

    cpus: int
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Demand:
    """The cells of one server, each on another cell of the node, and (alias, number) of its PCI devices."""

    cells: tuple[GuestCell, ...] = ()
    devices: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.cells or self.devices)


def demand_of(extra_specs: Mapping[str, str], vcpus: int, ram_mb: int) -> Demand:
    """Return the demands of a flavor of this size; BadRequest names an invalid extra spec."""
    return Demand(_cells(extra_specs, vcpus, ram_mb), _devices(extra_specs.get(PCI_ALIAS, "")))


def _devices(text: str) -> tuple[tuple[str, int], ...]:
    """Return the demands in `name:number` entries separated by commas, each name once."""
    result: Counter[str] = Counter()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, number = (part.strip() for part in entry.partition(":"))
        if not name or (colon and not (number.isdecimal() and 0 < int(number[:4]) <= MOST_CELLS)):
            raise BadRequest(f"The flavor's {PCI_ALIAS} {text[:80]!r} must be like alias:1 with 1 to {MOST_CELLS}.")
        result[name] += int(number) if colon else 1
    return tuple(sorted(result.items()))


def _number_of_cells(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:4]) <= MOST_CELLS:
        raise BadRequest(f"The flavor's {NUMA_NODES} {text[:40]!r} must be a number from 1 to {MOST_CELLS}.")
    return int(text)


def _cells(extra_specs: Mapping[str, str], vcpus: int, ram_mb: int) -> tuple[GuestCell, ...]:
    text = extra_specs.get(NUMA_NODES)
    if text is None:
        return ()
    count = _number_of_cells(text)
    cpus = [_cpus(extra_specs.get(f"hw:numa_cpus.{number}")) for number in range(count)]
    memory = [_memory(extra_specs.get(f"hw:numa_mem.{number}")) for number in range(count)]
    given = [one for one in (*cpus, *memory) if one is not None]
    if not given:
        return _equal_cells(count, vcpus, ram_mb)
    if len(given) < 2 * count:
        raise BadRequest(f"The flavor must have hw:numa_cpus.N and hw:numa_mem.N of all its {count} cells, or of none.")
    return _checked([one or set() for one in cpus], [one or 0 for one in memory], vcpus, ram_mb)


def _equal_cells(count: int, vcpus: int, ram_mb: int) -> tuple[GuestCell, ...]:
    if vcpus % count or ram_mb % count:
        raise BadRequest(
            f"{vcpus} vCPUs and {ram_mb} MB are not divisible by {NUMA_NODES} {count}: "
            "the flavor must have hw:numa_cpus.N and hw:numa_mem.N of each cell."
        )
    return (GuestCell(vcpus // count, ram_mb // count),) * count


def _checked(cpus: list[set[int]], memory: list[int], vcpus: int, ram_mb: int) -> tuple[GuestCell, ...]:
    if sorted(cpu for one in cpus for cpu in one) != list(range(vcpus)) or not all(cpus):
        raise BadRequest(f"The flavor's hw:numa_cpus.N must have each of its {vcpus} vCPUs once.")
    if sum(memory) != ram_mb:
        raise BadRequest(f"The flavor's hw:numa_mem.N must be {ram_mb} MB together, not {sum(memory)}.")
    return tuple(GuestCell(len(one), size) for one, size in zip(cpus, memory, strict=True))


def _cpus(text: str | None) -> set[int] | None:
    """Return the CPUs of a list such as `0,2-3`."""
    if text is None:
        return None
    result: set[int] = set()
    for part in text.split(","):
        first, _, last = (word.strip() for word in part.partition("-"))
        last = last or first
        if not (first.isdecimal() and last.isdecimal()) or not int(first[:5]) <= int(last[:5]) <= MOST_CPU:
            raise BadRequest(f"The flavor's hw:numa_cpus {text[:40]!r} must be a list of CPUs such as 0,2-3.")
        result |= set(range(int(first), int(last) + 1))
    return result


def _memory(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise BadRequest(f"The flavor's hw:numa_mem {text[:40]!r} must be a number of MB.")
    return int(text)
