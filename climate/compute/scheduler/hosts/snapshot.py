"""Snapshots of all nodes, kept between requests: built from rows, and updated with changed rows.

A snapshot is immutable; the next one shares its unchanged parts.
"""

import json
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from climate.compute.scheduler.hosts.table import (
    COLUMNS,
    Coded,
    Codes,
    Grouping,
    Hosts,
    Label,
    Mask,
    Numbers,
    Pool,
    Profile,
    Texts,
)
from climate.compute.store.nodes.scheduler_snapshot import Reading

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

SLACK = 64
"""Values that a coded column may add, beyond twice its initial number, before all rows are read again."""


@dataclass(frozen=True, slots=True)
class ValueCodes(Generic[T]):
    """Values of a coded column, and the key of each."""

    codes: Mapping[Hashable, int] = field(default_factory=dict)
    values: tuple[T, ...] = ()

    def knowing(self, keys: Sequence[K], make: Callable[[K], T]) -> "ValueCodes[T]":
        """Return codes with a value for each of the keys."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self.codes]
        if not unknown:
            return self
        codes = dict(self.codes) | {key: len(self.codes) + index for index, key in enumerate(unknown)}
        return ValueCodes(codes, (*self.values, *(make(key) for key in unknown)))

    def column(self, keys: Sequence[Hashable]) -> Coded[T]:
        return Coded(np.array([self.codes[key] for key in keys], dtype=np.int32), self.values)


@dataclass(frozen=True, slots=True)
class ColumnCodes:
    """Codes of the three coded columns."""

    pools: ValueCodes[Pool | None] = field(default_factory=ValueCodes)
    groupings: ValueCodes[Grouping] = field(default_factory=ValueCodes)
    profiles: ValueCodes[Profile] = field(default_factory=ValueCodes)

    def __len__(self) -> int:
        return len(self.pools.values) + len(self.groupings.values) + len(self.profiles.values)


@dataclass(frozen=True, slots=True)
class Services:
    """Columns of the compute services."""

    indexes: Mapping[str, int]
    enabled: Mask
    forced_down: Mask
    beat_at: Numbers
    """Unix time of the last heartbeat."""

    def up(self, now: datetime, down_seconds: float) -> Mask:
        """Return which services have a recent heartbeat and are not forced down."""
        return np.asarray((self.beat_at > now.timestamp() - down_seconds) & ~self.forced_down, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Content of one database snapshot."""

    seen: str
    """Database snapshot in the format of pg_snapshot."""
    origin: str
    """Source database of the rows; rows of another one cannot be merged."""
    hosts: Hosts
    """Columns without `up`, `disabled` and `io_ops`, which are computed per request."""
    ready: Mask
    """True if the driver reports the node and it is not in maintenance."""
    service: Codes
    """Index of the node's service."""
    services: Services
    labels: Mapping[int, tuple[Label, ...]]
    """Node -> its ordinary aggregates."""
    books: ColumnCodes
    room: int
    """Maximum number of values in all books."""

    def table(self, busy: str, now: datetime, down_seconds: float) -> Hosts:
        """Return the nodes for one request to consume; `busy`: ids of nodes, once for each server with disk I/O."""
        nodes = np.fromstring(busy, dtype=np.int64, sep=" ")
        io_ops = np.bincount(np.searchsorted(self.hosts.ids, nodes), minlength=len(self.hosts)).astype(np.float64)
        up = self.services.up(now, down_seconds)[self.service] & self.ready
        return replace(self.hosts.copy(), up=up, disabled=~self.services.enabled[self.service], io_ops=io_ops)


def whole(reading: Reading) -> Snapshot:
    """Return the snapshot of a complete reading."""
    services = _services(reading)
    labels = _labels(reading)
    nodes = _with_service(reading.nodes, services)
    hosts, books = _hosts(nodes, ColumnCodes(), labels, logging.WARNING)
    return Snapshot(
        seen=reading.seen,
        origin=reading.origin,
        hosts=hosts,
        ready=np.array(nodes["ready"], dtype=np.bool_),
        service=_service(nodes, services),
        services=services,
        labels=labels,
        books=books,
        room=2 * len(books) + SLACK,
    )


def moved_on(moment: Snapshot, reading: Reading) -> Snapshot | None:
    """Return the snapshot with later changes; None if a complete reading is needed."""
    if reading.restructured or reading.origin != moment.origin or _xmin(reading.seen) < _xmin(moment.seen):
        return None
    services = _later_services(moment.services, reading)
    if services is None:
        return None
    if not reading.nodes["id"]:
        return replace(moment, seen=reading.seen, services=services)
    hosts, books = _hosts(reading.nodes, moment.books, moment.labels, logging.DEBUG)
    indexes = np.searchsorted(moment.hosts.ids, hosts.ids)
    known = bool(indexes.max() < len(moment.hosts)) and np.array_equal(moment.hosts.ids[indexes], hosts.ids)
    if not known or len(books) > moment.room:
        return None
    return replace(
        moment,
        seen=reading.seen,
        hosts=Hosts(*[_patched(getattr(moment.hosts, name), indexes, getattr(hosts, name)) for name in COLUMNS]),
        ready=_patched(moment.ready, indexes, np.array(reading.nodes["ready"], dtype=np.bool_)),
        services=services,
        books=books,
    )


def _xmin(seen: str) -> int:
    """Return the oldest transaction that was in progress."""
    return int(seen.split(":", 1)[0])


def _patched(column: Any, indexes: NDArray[np.intp], fresh: Any) -> Any:
    if isinstance(column, Coded):
        return Coded(_patched(column.codes, indexes, fresh.codes), fresh.values)
    if np.array_equal(column[indexes], fresh):
        return column
    copy = column.copy()
    copy[indexes] = fresh
    return copy


def _services(reading: Reading) -> Services:
    hosts, enabled, forced_down, beats = zip(*reading.services, strict=True) if reading.services else ((), (), (), ())
    return Services(
        {host: index for index, host in enumerate(hosts)},
        np.array(enabled, dtype=np.bool_),
        np.array(forced_down, dtype=np.bool_),
        np.array(beats, dtype=np.float64),
    )


def _later_services(services: Services, reading: Reading) -> Services | None:
    """Return the services with their changes; None if there is a new service."""
    if not reading.services:
        return services
    later = _services(reading)
    if any(host not in services.indexes for host in later.indexes):
        return None
    indexes = np.array([services.indexes[host] for host in later.indexes])
    return Services(
        services.indexes,
        _patched(services.enabled, indexes, later.enabled),
        _patched(services.forced_down, indexes, later.forced_down),
        _patched(services.beat_at, indexes, later.beat_at),
    )


def _with_service(nodes: Mapping[str, Sequence[Any]], services: Services) -> Mapping[str, Sequence[object]]:
    """Return the nodes whose service exists."""
    kept = [host in services.indexes for host in nodes["service_host"]]
    if all(kept):
        return nodes
    for host in sorted({host for host in nodes["service_host"] if host not in services.indexes}):
        log.warning("No compute service record found for host %s", host)
    return {name: [value for value, keep in zip(column, kept, strict=True) if keep] for name, column in nodes.items()}


def _service(nodes: Mapping[str, Sequence[Any]], services: Services) -> Codes:
    return np.array([services.indexes[host] for host in nodes["service_host"]], dtype=np.int32)


def _labels(reading: Reading) -> Mapping[int, tuple[Label, ...]]:
    known = {number: Label(number, name, metadata) for number, name, metadata in reading.labels}
    labels: dict[int, tuple[Label, ...]] = {}
    for node, number in reading.members:
        if number in known:
            labels[node] = (*labels.get(node, ()), known[number])
    return labels


def _hosts(
    nodes: Mapping[str, Sequence[Any]], books: ColumnCodes, labels: Mapping[int, tuple[Label, ...]], level: int
) -> tuple[Hosts, ColumnCodes]:
    """Return the columns of these nodes, and the books with their values."""
    pools = list(zip(nodes["pool"], nodes["owner"], nodes["closed"], nodes["shared"], strict=True))
    indexes = [(zone, labels.get(node, ())) for zone, node in zip(nodes["zone"], nodes["id"], strict=True)]
    books = ColumnCodes(
        books.pools.knowing(pools, lambda key: Pool(*key) if key[0] is not None else None),
        books.groupings.knowing(indexes, lambda key: Grouping(*key)),
        books.profiles.knowing(nodes["profile"], _profile),
    )
    disk_mb = _numbers(nodes["local_gb"]) * 1024
    free_mb = disk_mb - _numbers(nodes["used_disk_mb"]) - _numbers(nodes["reserved_disk_mb"])
    hosts = Hosts(
        ids=np.array(nodes["id"], dtype=np.int64),
        names=_objects(nodes["name"]),
        service_hosts=_objects(nodes["service_host"]),
        host_ips=_objects(nodes["host_ip"]),
        vcpus=_numbers(nodes["vcpus"]),
        ram_mb=_numbers(nodes["memory_mb"]),
        disk_mb=disk_mb,
        used_vcpus=_numbers(nodes["used_vcpus"]),
        used_ram_mb=_numbers(nodes["used_ram_mb"]) + _numbers(nodes["reserved_ram_mb"]),
        used_disk_mb=disk_mb - _least(nodes, free_mb, level),
        servers=_numbers(nodes["used_servers"]),
        io_ops=np.zeros(len(disk_mb)),
        ram_ratio=_numbers(nodes["ram_ratio"]),
        cpu_ratio=_numbers(nodes["cpu_ratio"]),
        disk_ratio=_numbers(nodes["disk_ratio"]),
        present=np.array(nodes["present"], dtype=np.bool_),
        up=np.zeros(len(disk_mb), dtype=np.bool_),
        disabled=np.zeros(len(disk_mb), dtype=np.bool_),
        pool=books.pools.column(pools),
        grouping=books.groupings.column(indexes),
        profile=books.profiles.column(nodes["profile"]),
        metrics=_objects(nodes["metrics"]),
    )
    return hosts, books


def _least(nodes: Mapping[str, Sequence[Any]], free_mb: Numbers, level: int) -> Numbers:
    """Return the free disk in MB: the smaller of unallocated disk and the driver's report."""
    least_mb = np.array([np.inf if least is None else least * 1024.0 for least in nodes["disk_least_gb"]])
    for index in np.flatnonzero(np.isfinite(least_mb) & (least_mb > free_mb)).tolist():
        texts = (nodes["name"][index], nodes["disk_least_gb"][index], free_mb[index] / 1024)
        log.log(level, "Host %s has more disk space than database expected (%sgb > %sgb)", *texts)
    return cast(Numbers, np.minimum(least_mb, free_mb))


def _profile(text: str) -> Profile:
    kind, version, cpu_info, supported, stats = json.loads(text)
    return Profile(kind, version, cpu_info, tuple((arch, hv, mode) for arch, hv, mode in supported), stats)


def _numbers(values: Sequence[object]) -> Numbers:
    return np.array(values, dtype=np.float64)


def _objects(values: Sequence[Any]) -> Texts:
    column = np.empty(len(values), dtype=np.object_)
    column[:] = values
    return column
