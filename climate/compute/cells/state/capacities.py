"""Capacities of cells: free memory and disk in MB, and the number of servers of each size that fit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from climate.compute.errors import BadRequest
from climate.compute.store.cells.resources import Free

Capacities = Mapping[str, Any]
"""`{"ram_free": {"total_mb", "units_by_mb": {"512": n}}, "disk_free": {...}}`; empty for a cell without nodes."""


KINDS = ("ram_free", "disk_free")

LARGEST = 2.0**50
"""Maximum reported number of MB or servers, so that sums over all cells stay exact."""


def own(nodes: Sequence[Free], sizes: Iterable[tuple[int, int]], reserve_percent: float) -> dict[str, object]:
    """Return the capacities of these nodes for servers of these sizes: (memory, disk) in MB.

    `reserve_percent` of each node is excluded from the units, but not from the totals.
    """
    if not nodes:
        return {}
    wanted = list(sizes)
    ram = [(node.ram_mb, node.free_ram_mb) for node in nodes]
    disk = [(node.disk_mb, node.free_disk_mb) for node in nodes]
    return {
        "ram_free": _free(ram, {size for size, _ in wanted}, reserve_percent),
        "disk_free": _free(disk, {size for _, size in wanted}, reserve_percent),
    }


def read(given: object) -> dict[str, Any]:
    """Return the capacities that a child reports. Raise BadRequest unless they have the form of `own`."""
    if not isinstance(given, dict) or not all(key in KINDS and _is_free(free) for key, free in given.items()):
        raise BadRequest(f"capacities must be an object of {' and '.join(KINDS)}, each with numbers")
    return given


def is_number(value: object) -> bool:
    """Return whether a reported value is a summable number; overcommitted memory may make it negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def added(one: Capacities, other: Capacities) -> dict[str, object]:
    """Return the sum of two capacities, number by number, without other values."""
    result: dict[str, object] = {}
    for key in {**one, **other}:
        values = [value for value in (one.get(key), other.get(key)) if value is not None]
        if all(isinstance(value, Mapping) for value in values):
            result[key] = added(*(values if len(values) == 2 else (values[0], {})))
        elif all(isinstance(value, int | float) for value in values):
            result[key] = sum(values)
    return result


def total(parts: Iterable[Capacities]) -> dict[str, object]:
    """Return the sum of several capacities."""
    result: dict[str, Any] = {}
    for part in parts:
        result = added(result, part)
    return result


def units(capacities: Capacities, memory_mb: int) -> float:
    """Return the number of servers with this memory that fit; 0 if unknown."""
    ram = capacities.get("ram_free")
    known = ram.get("units_by_mb") if isinstance(ram, Mapping) else None
    result = known.get(str(memory_mb), 0) if isinstance(known, Mapping) else 0
    return result if isinstance(result, int | float) else 0


def _is_free(given: object) -> bool:
    by_size = given.get("units_by_mb", {}) if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(by_size, dict) or not set(given) <= {"total_mb", "units_by_mb"}:
        return False
    return is_number(given.get("total_mb", 0)) and all(
        size.isdecimal() and is_number(number) for size, number in by_size.items()
    )


def _free(nodes: Sequence[tuple[int, int]], sizes: set[int], reserve_percent: float) -> dict[str, object]:
    """Return total_mb and units_by_mb for nodes of these (total, free) MB."""
    by_size = {
        str(size): sum(
            int(max(0.0, free - whole * reserve_percent / 100) / size) if size else 0 for whole, free in nodes
        )
        for size in sorted(sizes)
    }
    return {"total_mb": sum(free for _, free in nodes), "units_by_mb": by_size}
