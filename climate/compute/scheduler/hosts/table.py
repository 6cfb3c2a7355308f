"""Columns of all nodes in a snapshot: input of filters and weighers.

Values that many nodes share are stored once and referred to by number, so that Python code runs once per value, not
once per node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from climate.compute.models.node import admits
from climate.compute.models.request import Spec

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Texts = NDArray[np.object_]
Codes = NDArray[np.int32]

_FIRST = np.zeros(1, dtype=np.int32)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Coded(Generic[T]):
    """Column with repeated values: `values[codes[row]]` is the value of a row."""

    codes: Codes
    values: tuple[T, ...]

    def where(self, fits: Callable[[T], bool]) -> Mask:
        """Return which rows have a matching value; `fits` is called once per value."""
        verdicts = np.fromiter((fits(value) for value in self.values), dtype=np.bool_, count=len(self.values))
        return np.asarray(verdicts[self.codes], dtype=np.bool_)

    def number(self, of: Callable[[T], float]) -> Numbers:
        """Return a number for each row."""
        return np.fromiter((of(value) for value in self.values), dtype=np.float64, count=len(self.values))[self.codes]

    def row(self, index: int) -> "Coded[T]":
        """Return one row with only its value."""
        return Coded(_FIRST, (self.values[self.codes[index]],))


@dataclass(frozen=True, slots=True)
class Pool:
    """Pool of a reserved node: the reservation pool, or one lent to `owner`'s reservation."""

    name: str
    owner: str | None = None
    closed: bool = False
    shared: str | None = None
    """Further projects that may boot there, separated by commas."""

    def admits(self, project_id: str) -> bool:
        """Return whether the pool is lent to a project."""
        return admits(self.owner, self.shared, project_id)


@dataclass(frozen=True, slots=True)
class Label:
    """Ordinary aggregate, as filters use it."""

    id: int
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Aggregates of a node, and the availability zone that the node itself names."""

    zone: str | None = None
    aggregates: tuple[Label, ...] = ()

    def values(self, key: str) -> list[str]:
        """Return the aggregates' values of `key`, unparsed."""
        return [label.metadata[key] for label in self.aggregates if key in label.metadata]

    def words(self, key: str) -> frozenset[str]:
        """Return the aggregates' values of `key`, split at commas."""
        return frozenset(word for value in self.values(key) for part in value.split(",") if (word := part.strip()))

    def keys(self) -> frozenset[str]:
        """Return all metadata keys of the aggregates."""
        return frozenset(key for label in self.aggregates for key in label.metadata)


@dataclass(frozen=True, slots=True)
class Profile:
    """Constant part of a driver's report about a node."""

    hypervisor_type: str = ""
    hypervisor_version: int | None = None
    cpu_info: str = ""
    """JSON text, as reported by the driver."""
    supported: tuple[tuple[str, str, str], ...] = ()
    """Supported (architecture, hypervisor type, mode) of servers."""
    stats: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Table of nodes, one row per node, in the order of their ids. Sizes: MB.

    `used_ram_mb` and `used_disk_mb` include what is reserved for the node itself, and what its driver reports as used
    beside allocations.
    """

    ids: NDArray[np.int64]
    names: Texts
    service_hosts: Texts
    host_ips: Texts
    vcpus: Numbers
    ram_mb: Numbers
    disk_mb: Numbers
    used_vcpus: Numbers
    used_ram_mb: Numbers
    used_disk_mb: Numbers
    servers: Numbers
    io_ops: Numbers
    """Number of servers that are being built, imaged, resized and the like."""
    ram_ratio: Numbers
    cpu_ratio: Numbers
    disk_ratio: Numbers
    present: Mask
    """True if the driver reports the node."""
    up: Mask
    """True if the service has a recent heartbeat, the driver reports the node, and it is not in maintenance."""
    disabled: Mask
    """True if an administrator disabled the service, whether or not it is up."""
    pool: Coded[Pool | None]
    """None: an ordinary node."""
    grouping: Coded[Grouping]
    profile: Coded[Profile]
    metrics: Texts
    """Mapping of metrics for each node."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def free_ram_mb(self) -> Numbers:
        """Return the unallocated memory, which is negative if the node is overcommitted."""
        return self.ram_mb - self.used_ram_mb

    @property
    def free_disk_mb(self) -> Numbers:
        return self.disk_mb - self.used_disk_mb

    def copy(self) -> "Hosts":
        """Return a copy for one request to consume."""
        return replace(self, **{name: getattr(self, name).copy() for name in CONSUMED})

    def row(self, index: int) -> "Hosts":
        """Return a view of one node as a table."""
        cut = slice(index, index + 1)
        columns: list[Any] = [c.row(index) if isinstance(c, Coded) else c[cut] for c in _columns(self)]
        return Hosts(*columns)

    def where(self, mask: Mask) -> "Hosts":
        """Return a copy of the nodes under this mask as a table."""
        columns: list[Any] = [
            Coded(c.codes[mask], c.values) if isinstance(c, Coded) else c[mask] for c in _columns(self)
        ]
        return Hosts(*columns)

    def consume(self, index: int, spec: Spec) -> None:
        """Count one more server on the node at `index`."""
        self.used_vcpus[index] += spec.vcpus
        self.used_ram_mb[index] += spec.ram_mb
        self.used_disk_mb[index] += spec.disk_mb
        self.servers[index] += 1
        self.io_ops[index] += 1


COLUMNS = tuple(column.name for column in fields(Hosts))
_columns = attrgetter(*COLUMNS)
CONSUMED = ("used_vcpus", "used_ram_mb", "used_disk_mb", "servers", "io_ops")
"""Columns that change while a request is placed."""
