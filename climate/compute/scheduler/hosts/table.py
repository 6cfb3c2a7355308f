"""All nodes at one moment, as columns: what filters and weighers work on.

What many nodes have in common stands once and is pointed at by a number, so
that a rule in Python is asked once per kind of node and not once per node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from climate.compute.models.request import Spec

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Texts = NDArray[np.object_]
Codes = NDArray[np.int32]

_FIRST = np.zeros(1, dtype=np.int32)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Coded(Generic[T]):
    """A column whose values repeat: `values[codes[row]]` is the value of a row."""

    codes: Codes
    values: tuple[T, ...]

    def where(self, fits: Callable[[T], bool]) -> Mask:
        """Which rows have a value that fits; each value is asked for once."""
        verdicts = np.fromiter((fits(value) for value in self.values), dtype=np.bool_, count=len(self.values))
        return np.asarray(verdicts[self.codes], dtype=np.bool_)

    def number(self, of: Callable[[T], float]) -> Numbers:
        """A number for each row."""
        return np.fromiter((of(value) for value in self.values), dtype=np.float64, count=len(self.values))[self.codes]

    def row(self, place: int) -> "Coded[T]":
        """One row with its value alone."""
        return Coded(_FIRST, (self.values[self.codes[place]],))


@dataclass(frozen=True, slots=True)
class Pool:
    """Where a node is kept for leases: the reservation pool, or one lent to `owner`'s reservation."""

    name: str
    owner: str | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """An ordinary aggregate, as filters read it."""

    id: int
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The aggregates that a node is in, and the zone that it names itself."""

    zone: str | None = None
    aggregates: tuple[Label, ...] = ()

    def values(self, key: str) -> list[str]:
        """What the aggregates say under `key`, each as it is written."""
        return [label.metadata[key] for label in self.aggregates if key in label.metadata]

    def words(self, key: str) -> frozenset[str]:
        """The same as single words: values are lists by commas."""
        return frozenset(word for value in self.values(key) for part in value.split(",") if (word := part.strip()))

    def keys(self) -> frozenset[str]:
        """What its aggregates say anything about."""
        return frozenset(key for label in self.aggregates for key in label.metadata)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a node's driver says of it that does not change from boot to boot."""

    hypervisor_type: str = ""
    hypervisor_version: int | None = None
    cpu_info: str = ""
    """JSON, as drivers report it."""
    supported: tuple[tuple[str, str, str], ...] = ()
    """(architecture, hypervisor type, mode) of the servers that it can run."""
    stats: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Hosts:
    """One row per node, in the order of their ids.  Sizes: MB.

    `used_ram_mb` and `used_disk_mb` hold what is kept for the node itself and
    what its driver says is gone beside what is promised.
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
    """Servers on the node that are being built, imaged, resized and the like."""
    ram_ratio: Numbers
    cpu_ratio: Numbers
    disk_ratio: Numbers
    present: Mask
    """Its driver reports it."""
    up: Mask
    """Its service was heard of lately, its driver reports it, and it is not in maintenance."""
    disabled: Mask
    """Its service was disabled by an administrator, whether or not it is up."""
    pool: Coded[Pool | None]
    """None: an ordinary node."""
    grouping: Coded[Grouping]
    profile: Coded[Profile]
    metrics: Texts
    """A mapping of numbers for each node."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def free_ram_mb(self) -> Numbers:
        """Memory that is not promised; below zero when more is promised than is there."""
        return self.ram_mb - self.used_ram_mb

    @property
    def free_disk_mb(self) -> Numbers:
        return self.disk_mb - self.used_disk_mb

    def copy(self) -> "Hosts":
        """The same moment, to be consumed by one request."""
        return replace(self, **{name: getattr(self, name).copy() for name in CONSUMED})

    def row(self, place: int) -> "Hosts":
        """One node as a table of its own, over the same memory."""
        cut = slice(place, place + 1)
        columns: list[Any] = [c.row(place) if isinstance(c, Coded) else c[cut] for c in _columns(self)]
        return Hosts(*columns)

    def where(self, mask: Mask) -> "Hosts":
        """The nodes under this mask as a table of its own, with columns of its own."""
        columns: list[Any] = [
            Coded(c.codes[mask], c.values) if isinstance(c, Coded) else c[mask] for c in _columns(self)
        ]
        return Hosts(*columns)

    def consume(self, place: int, spec: Spec) -> None:
        """Count one more server on the node at `place` (cloud.md C.2)."""
        self.used_vcpus[place] += spec.vcpus
        self.used_ram_mb[place] += spec.ram_mb
        self.used_disk_mb[place] += spec.disk_mb
        self.servers[place] += 1
        self.io_ops[place] += 1


COLUMNS = tuple(column.name for column in fields(Hosts))
_columns = attrgetter(*COLUMNS)
CONSUMED = ("used_vcpus", "used_ram_mb", "used_disk_mb", "servers", "io_ops")
"""The columns that change while a request is placed."""
