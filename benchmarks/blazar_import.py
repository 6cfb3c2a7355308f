"""Import of a Blazar database of 1,000 hosts and 10,000 leases, with all allocations compared afterwards."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_DNS, UUID, uuid5

import psycopg
from sqlalchemy import text

from benchmarks import scratch
from benchmarks.figures import head, line, step
from benchmarks.processor_time import Meter
from climate import log_setup
from climate.cloud import CloudHost
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.service.blazar_import import importer, source
from climate.service.blazar_import.records import BlazarData
from climate.service.journal import consistency_check

RECORDED = Path(__file__).parent.parent / "tests/service/blazar_import/recorded/postgresql-18.0.0.sql"
GROUP = 2
"""Number of hosts that a lease of whole hosts has."""
SHARING = 4
"""Number of leases that share a host at a time."""
SLOTS = 2
"""Number of servers on each host of a lease that shares it."""
PROJECT = "project"


def main(short: bool) -> None:
    log_setup.configure(level="ERROR")
    hosts, leases = (100, 1_000) if short else (1_000, 10_000)
    head("Import of a Blazar database")
    with scratch.place() as place, scratch.database(place.settings.database_url) as url:
        with step(f"generating {hosts:,} hosts and {leases:,} leases"):
            cloud = generate(url, hosts, leases, datetime.now(UTC))
        climate = replace(place.deployment(pool_size=1).climate, cloud=cloud)
        with climate.engine.connect() as conn:  # so that Postgres has the process that is measured
            conn.execute(text("SELECT 1"))
        meter = Meter([os.getpid()], place.settings.database_url)
        before, begun = meter.read(), time.perf_counter()
        data = source.read(url)
        report = importer.run_import(climate, data)
        took, spent = time.perf_counter() - begun, meter.read().since(before)
        line("hosts, leases, allocations", f"{report.hosts:,}, {report.leases:,}, {report.allocations:,}")
        line("processor time of the command", f"{spent.processes / 1000:.1f} s", "60 s with that of Postgres")
        line("processor time of Postgres", f"{spent.postgres / 1000:.1f} s")
        line("duration", f"{took:.1f} s")
        line("refused", len(report.refusals), "0")
        line("allocations that differ", len(differing(climate, data)), "0")
        line("differences between journal and rows", len(consistency_check.differences(climate)), "0")
        climate.engine.dispose()


@dataclass(frozen=True, slots=True)
class Lease:
    """A generated lease; `servers` is set for one that shares its hosts."""

    number: UUID
    hosts: tuple[int, ...]
    start: datetime
    end: datetime
    status: str
    servers: bool

    @property
    def reservation(self) -> UUID:
        return named(f"reservation of {self.number}")

    @property
    def allocated(self) -> list[int]:
        """Return the hosts of its allocations, as many times as there are servers."""
        if self.status == "TERMINATED":
            return []
        return [host for host in self.hosts for _ in range(SLOTS if self.servers else 1)]


def named(name: str) -> UUID:
    return uuid5(NAMESPACE_DNS, f"{name}.bench.example")


def generate(url: str, hosts: int, leases: int, now: datetime) -> FakeCloud:
    """Fill an empty database as Blazar would; return the cloud with its hosts in Blazar's aggregates.

    Groups of hosts have one lease after the other: some are over, one is active, most are pending. A tenth of the
    hosts is shared.
    """
    made = list(_leases(hosts, leases, now.replace(minute=0, second=0, microsecond=0)))
    schema = "".join(part for part in _statements() if not part.startswith("INSERT INTO"))
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute(schema.encode())
        for table, rows in _rows(hosts, made, now).items():
            _copy(conn, table, rows)
    return _cloud(hosts, made)


def _statements() -> Iterator[str]:
    """Yield the statements of the recording; a value with line breaks stays in one of them."""
    statement = ""
    for part in RECORDED.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += part
        if part.endswith(";\n"):
            yield statement
            statement = ""


def _leases(hosts: int, leases: int, now: datetime) -> Iterator[Lease]:
    alone = hosts * 9 // 10 // GROUP
    for number in range(leases):
        place, turn = number % (alone + hosts - alone * GROUP), number // (alone + hosts - alone * GROUP)
        servers = place >= alone
        # Leases that share a host overlap in time, those of whole hosts follow each other without a gap.
        start = now + timedelta(hours=(turn // SHARING if servers else turn) - 3)
        end = start + timedelta(hours=1)
        status = "TERMINATED" if end <= now else "ACTIVE" if start <= now else "PENDING"
        own = (alone * GROUP + place - alone,) if servers else tuple(range(place * GROUP, place * GROUP + GROUP))
        yield Lease(named(f"lease {number}"), own, start, end, status, servers)


Row = Mapping[str, object]


def _rows(hosts: int, leases: Sequence[Lease], now: datetime) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {"resource_properties": [_property(now)]}
    rows["computehosts"] = [_host(number, now) for number in range(1, hosts + 1)]
    rows["computehost_extra_capabilities"] = [
        {"id": named(f"rack of {number}"), "computehost_id": str(number), "property_id": named("rack")}
        | {"capability_value": f"r{number // 40}"}
        for number in range(1, hosts + 1)
    ]
    for table in ("leases", "reservations", "events", "computehost_reservations", "instance_reservations"):
        rows[table] = []
    rows["computehost_allocations"] = []
    for lease in leases:
        for table, row in _of_lease(lease, now):
            rows[table].append(row)
    return rows


def _property(now: datetime) -> Row:
    return {"id": named("rack"), "resource_type": "physical:host", "property_name": "rack", "created_at": now}


def _host(number: int, now: datetime) -> Row:
    own = {"id": str(number), "hypervisor_hostname": f"node-{number}", "service_name": f"node-{number}"}
    sizes = {"vcpus": 16, "memory_mb": 65536, "local_gb": 1000, "cpu_info": "{}", "hypervisor_type": "QEMU"}
    return {**own, **sizes, "hypervisor_version": 1, "availability_zone": "nova", "trust_id": "t", "created_at": now}


def _of_lease(lease: Lease, now: datetime) -> Iterator[tuple[str, Row]]:
    dates = {"start_date": lease.start, "end_date": lease.end, "created_at": now - timedelta(days=1)}
    owner = {"name": f"lease-{lease.number}", "project_id": PROJECT, "user_id": "user"}
    yield "leases", {"id": lease.number, **owner, **dates, "status": lease.status}
    kind = "virtual:instance" if lease.servers else "physical:host"
    yield "reservations", {"id": lease.reservation, "lease_id": lease.number, "resource_type": kind}
    wanted = {"id": named(f"request of {lease.number}"), "reservation_id": lease.reservation}
    if lease.servers:
        size = {"vcpus": 2, "memory_mb": 4096, "disk_gb": 20, "amount": SLOTS, "resource_properties": ""}
        yield "instance_reservations", {**wanted, **size}
    else:
        texts = {"hypervisor_properties": "", "resource_properties": "", "before_end": "default"}
        yield "computehost_reservations", {**wanted, **texts, "count_range": f"{GROUP}-{GROUP}"}
    done = {"PENDING": (), "ACTIVE": ("start_lease",), "TERMINATED": ("start_lease", "end_lease")}[lease.status]
    for event, at in (("start_lease", lease.start), ("end_lease", lease.end)):
        state = {"event_type": event, "time": at, "status": "DONE" if event in done else "UNDONE"}
        yield "events", {"id": named(f"{event} of {lease.number}"), "lease_id": lease.number, **state}
    for place, host in enumerate(lease.allocated):
        own = {"id": named(f"{place} of {lease.number}"), "reservation_id": lease.reservation}
        yield "computehost_allocations", {**own, "compute_host_id": str(host + 1)}


def _copy(conn: psycopg.Connection[tuple[object, ...]], table: str, rows: Sequence[Row]) -> None:
    if not rows:
        return
    columns = list(rows[0])
    with conn.cursor() as cursor, cursor.copy(f"COPY public.{table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([_stored(row[name]) for name in columns])


def _stored(value: object) -> object:
    """Return a time in UTC without a zone, as Blazar stores it, and an id as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return str(value) if isinstance(value, UUID) else value


def _cloud(hosts: int, leases: Sequence[Lease]) -> FakeCloud:
    size = ("compute", 16, 65536, 1000, "{}", "QEMU", 1, None, 0)
    cloud = FakeCloud({f"node-{number}": CloudHost(f"node-{number}", *size) for number in range(1, hosts + 1)})
    for name in cloud.hosts:
        cloud.enrol(name, 0)
    for lease in leases:
        if lease.status == "ACTIVE" and not lease.servers:
            cloud.lend(str(lease.reservation), PROJECT, [f"node-{host + 1}" for host in lease.hosts], 0)
    return cloud


Allocation = tuple[str, str, int, datetime, datetime]
"""Reservation, host, slots, start and end."""


def differing(climate: Climate, data: BlazarData) -> set[Allocation]:
    """Return the allocations that only Blazar or only climate has."""
    query = text("""
        SELECT a.reservation_id::text, h.hypervisor_hostname, a.slots, lower(a.during), upper(a.during)
        FROM allocations a JOIN hosts h ON h.id = a.host
    """)
    with climate.engine.connect() as conn:
        here: set[Allocation] = {(row[0], row[1], row[2], row[3], row[4]) for row in conn.execute(query)}
    names = {host.id: host.name for host in data.hosts}
    there: set[Allocation] = {
        (one.id, names[host], count if one.resource_type == "virtual:instance" else 0, lease.start, lease.end)
        for lease in data.leases
        for one in lease.reservations
        for host, count in Counter(one.hosts).items()
    }
    return here ^ there
