"""Free times of hosts, addresses and storage pools in a horizon, for the search for a time that fits.

One statement per reservation. Allocations come as packed numbers, one value per host: a hundred thousand of them are
read in some tens of milliseconds. Allocations outside the horizon are not read.
"""

import sys
from array import array
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, LargeBinary, Select, Subquery, Text, bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY, TSTZRANGE, Range

from climate.domain.availability.demands import (
    ADDRESSES,
    AMOUNTS,
    HOSTS,
    Horizon,
    Profile,
    Resources,
    SharedDemand,
    WholeDemand,
)
from climate.domain.facts import FOREVER
from climate.domain.hosts.requirements import Requirement
from climate.domain.period import Period
from climate.store.allocation import free_gaps, preemptible
from climate.store.allocation.floating_ips import AddressRequest
from climate.store.allocation.free_gaps import BEGINS, ENDS
from climate.store.allocation.host_queries import far_from_up, suits
from climate.store.allocation.hosts import HostRequest
from climate.store.allocation.inventories import AmountRequest
from climate.store.allocation.shared_capacity import CapacityRequest
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import IN_FORCE

Uses = Mapping[int, list[tuple[int, int, Resources | None]]]

MISSING = -1
"""Stands for an address that is required and cannot be reserved."""

_SPAN = (
    "int8send(floor(date_part('epoch', lower(during)))::int8)"
    " || int8send(ceil(date_part('epoch', upper(during)))::int8)"
)
_WORDS = "int8send(slots::int8) || int8send(vcpus) || int8send(memory_mb) || int8send(disk_gb)"


def of_hosts(conn: Connection, request: HostRequest, horizon: Horizon, tail: int, ready: datetime) -> WholeDemand:
    """Return the demand for whole hosts. Hosts that are off or shutting down are free from `ready` on."""
    window = _reach(horizon, request.window, tail)
    # The index of all allocations lacks their kind, hence the narrower statement is used only where it matters.
    ordinary = not request.gives_way and preemptible.are_there(conn, window)
    rows = conn.execute(
        _whole(request.requirement, horizon.in_maintenance, ordinary), _parameters(request, window)
    ).all()
    known = [(number, begins, ends) for number, _, begins, ends in rows]
    until_up = (seconds(horizon.now), seconds(ready))
    off = {number: until_up for number, is_off, _, _ in rows if is_off} if until_up[0] < until_up[1] else {}
    gaps = free_gaps.decode(known, off)
    return WholeDemand(HOSTS, request.least, request.most, tail, gaps, preemptible=request.gives_way)


def of_capacity(conn: Connection, request: CapacityRequest, horizon: Horizon, tail: int) -> SharedDemand:
    """Return the demand for slots on shared hosts."""
    window = _reach(horizon, request.window, tail)
    capacities, uses = dict[int, Resources](), dict[int, list[tuple[int, int, Resources | None]]]()
    for number, vcpus, memory, disk, packed in conn.execute(
        _shared(request.requirement, horizon.in_maintenance), _parameters(request, window)
    ):
        capacities[number] = {"vcpus": vcpus, "memory_mb": memory, "disk_gb": disk}
        uses[number] = [
            (begin, end, {"vcpus": v, "memory_mb": m, "disk_gb": d} if slots else None)
            for begin, end, slots, v, m, d in _rows(packed, 6)
        ]
    if request.classes:
        _add_classes(conn, request, window, capacities, uses)
    size = request.order.size
    asked = {"vcpus": size.vcpus, "memory_mb": size.memory_mb, "disk_gb": size.disk_gb, **request.classes}
    profiles = {number: Profile.of(capacity, uses[number]) for number, capacity in capacities.items()}
    return SharedDemand(HOSTS, request.order.amount, asked, tail, profiles, request.order.affinity)


def _add_classes(
    conn: Connection,
    request: CapacityRequest,
    window: Period,
    capacities: dict[int, Resources],
    uses: dict[int, list[tuple[int, int, Resources | None]]],
) -> None:
    given = {"names": list(request.classes), "numbers": list(capacities), "during": Range(window.start, window.end)}
    for host, name, begin, end, amount in conn.execute(_CLASSES, given):
        if begin is None:
            capacities[host] = {**capacities[host], name: amount}
        else:
            uses[host].append((begin, end, {name: amount}))


def of_addresses(conn: Connection, request: AddressRequest, horizon: Horizon, tail: int) -> WholeDemand:
    """Return the demand for floating IPs of a network; required ones that do not exist make it impossible."""
    window = _reach(horizon, request.window, tail)
    given = {"network_id": request.network_id, "during": Range(window.start, window.end)}
    rows = conn.execute(_ADDRESSES, given).all()
    numbers = {row.address: row.number for row in rows}
    must = frozenset(numbers.get(address, MISSING) for address in request.required)
    gaps = free_gaps.decode([(row.number, row.begins, row.ends) for row in rows], {})
    return WholeDemand(ADDRESSES, request.amount, request.amount, tail, gaps, must)


def of_amounts(conn: Connection, request: AmountRequest, horizon: Horizon, tail: int) -> SharedDemand:
    """Return the demand for volumes in storage pools of a class."""
    lasting = request.window.end == FOREVER
    window = Period(horizon.period.start, FOREVER) if lasting else _reach(horizon, request.window, tail)
    given = {
        "resource_type": request.resource_type,
        "resource_class": request.resource_class,
        "during": Range(window.start, window.end),
    }
    name = f"units of {request.resource_class}"
    profiles = {
        row.number: Profile.of(
            {name: row.total}, ((begin, end, {name: amount}) for begin, end, amount in _rows(row.busy, 3))
        )
        for row in conn.execute(_AMOUNTS, given)
    }
    return SharedDemand(AMOUNTS, request.pieces, {name: request.piece}, tail, profiles, lasting=lasting)


def seconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() // 1)


def _reach(horizon: Horizon, window: Period, tail: int) -> Period:
    """Return the period whose allocations matter: the horizon with a tail, and the window of a lease at its begin."""
    return Period(horizon.period.start, max(horizon.period.end + timedelta(seconds=tail), window.end))


def _parameters(request: HostRequest | CapacityRequest, window: Period) -> Mapping[str, object]:
    return {
        "during": Range(window.start, window.end),
        "project_id": request.project_id,
        "must": [],
        "without": [],
        "soon": True,
    }


def _rows(packed: bytes | None, width: int) -> Iterable[tuple[int, ...]]:
    numbers = array("q", packed or b"")
    if sys.byteorder == "little":
        numbers.byteswap()
    return zip(*(numbers[index::width] for index in range(width)), strict=True)


def _packed(in_maintenance: bool, ordinary: bool, **words: str) -> Subquery:
    """Return the allocations of each host. An index alone has the periods of whole hosts, but not the kinds.

    With `ordinary`, preemptible ones are left out.
    """
    others = "AND kind <> 'maintenance'" if in_maintenance else ""
    others += " AND NOT preemptible" if ordinary else ""
    packed = text(f"""
        SELECT host, {", ".join(f"{word} AS {name}" for name, word in words.items())} FROM allocations
        WHERE {IN_FORCE} AND during && :during {others} GROUP BY host
    """).bindparams(bindparam("during", type_=TSTZRANGE))  # noqa: S608
    return packed.columns(host=BigInteger, **dict.fromkeys(words, LargeBinary)).subquery("packed")


@lru_cache(maxsize=500)
def _whole(requirement: Requirement, in_maintenance: bool, ordinary: bool) -> Select[Any]:
    packed = _packed(in_maintenance, ordinary, begins=BEGINS, ends=ENDS)
    off = (far_from_up() > 0).label("off")
    query = select(hosts.c.id, off, packed.c.begins, packed.c.ends).outerjoin(packed, packed.c.host == hosts.c.id)
    return query.where(suits(requirement))


@lru_cache(maxsize=500)
def _shared(requirement: Requirement, in_maintenance: bool) -> Select[Any]:
    packed = _packed(in_maintenance, ordinary=True, busy=f"string_agg({_SPAN} || {_WORDS}, ''::bytea)")
    query = select(hosts.c.id, hosts.c.vcpus, hosts.c.memory_mb, hosts.c.local_gb, packed.c.busy)
    return query.outerjoin(packed, packed.c.host == hosts.c.id).where(suits(requirement))


_ADDRESSES = text(f"""
    SELECT f.number, host(f.address) AS address, p.begins, p.ends
    FROM floating_ips f LEFT JOIN (
        SELECT number, {BEGINS} AS begins, {ENDS} AS ends FROM floating_allocations
        WHERE {IN_FORCE} AND during && :during GROUP BY number) p ON p.number = f.number
    WHERE f.network_id = :network_id AND f.removed_at IS NULL
""").bindparams(bindparam("during", type_=TSTZRANGE))  # noqa: S608

_AMOUNTS = text(f"""
    SELECT i.number, i.total, p.busy
    FROM inventories i LEFT JOIN (
        SELECT number, string_agg({_SPAN} || int8send(amount), ''::bytea) AS busy FROM inventory_allocations
        WHERE {IN_FORCE} AND during && :during GROUP BY number) p ON p.number = i.number
    WHERE i.resource_type = :resource_type AND i.resource_class = :resource_class AND NOT i.closed
        AND i.removed_at IS NULL
""").bindparams(bindparam("during", type_=TSTZRANGE))  # noqa: S608

# Amounts as in `resource_classes`: first the capacities of hosts, without times, then the uses.
_CLASSES = text(f"""
    SELECT h.id, c.name, NULL::int8 AS begins, NULL::int8 AS ends,
        CASE WHEN h.extra ->> ('resources:' || c.name) ~ '^[0-9]{{1,9}}$'
            THEN (h.extra ->> ('resources:' || c.name))::int8 ELSE 0 END AS amount
    FROM hosts h CROSS JOIN unnest(:names) AS c (name) WHERE h.id = ANY (:numbers)
    UNION ALL
    SELECT a.host, c.name, floor(date_part('epoch', lower(a.during)))::int8,
        ceil(date_part('epoch', upper(a.during)))::int8, a.slots * CASE
            WHEN s.extra_specs ->> ('resources:' || c.name) ~ '^[0-9]{{1,9}}$'
                THEN (s.extra_specs ->> ('resources:' || c.name))::int8 ELSE 0 END
    FROM allocations a JOIN reservations r ON r.id = a.reservation_id
    CROSS JOIN LATERAL (SELECT CASE WHEN r.resource_type = 'flavor:instance'
        THEN (r.spec ->> 'resource_properties')::jsonb -> 'extra_specs' END AS extra_specs) s
    CROSS JOIN unnest(:names) AS c (name)
    WHERE a.{IN_FORCE} AND a.during && :during AND a.host = ANY (:numbers) AND a.slots > 0
""").bindparams(  # noqa: S608
    bindparam("names", type_=ARRAY(Text)),
    bindparam("numbers", type_=ARRAY(BigInteger)),
    bindparam("during", type_=TSTZRANGE),
)
