"""What is promised, by brute force: from the rows, and as the API tells it."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

import psycopg

from climate.bootstrap import plain_url
from tests.system.api_client import Api


class Held(NamedTuple):
    """A host that is kept for a lease."""

    host: str
    lease_id: str
    start: datetime
    end: datetime


def in_rows(database_url: str) -> list[Held]:
    """What the database holds now or later."""
    query = """
        SELECT h.hypervisor_hostname, r.lease_id::text, lower(a.during), upper(a.during)
        FROM allocations a JOIN hosts h ON h.id = a.host JOIN reservations r ON r.id = a.reservation_id
        WHERE a.state IN ('held', 'active')"""
    with psycopg.connect(plain_url(database_url)) as conn:
        return [Held(*row) for row in conn.execute(query)]


def in_api(admin: Api) -> list[Held]:
    """What the calendar of hosts shows."""
    names = {host["id"]: host["hypervisor_hostname"] for host in admin.read("/v1/os-hosts")["hosts"]}
    return [
        Held(names[row["resource_id"]], one["lease_id"], _date(one["start_date"]), _date(one["end_date"]))
        for row in admin.read("/v1/os-hosts/allocations")["allocations"]
        for one in row["reservations"]
    ]


def _date(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def overlaps(held: Iterable[Held]) -> list[tuple[Held, Held]]:
    """Every pair of promises of one host that share a moment."""
    by_host: dict[str, list[Held]] = defaultdict(list)
    for one in held:
        by_host[one.host].append(one)
    return [
        (a, b)
        for promises in by_host.values()
        for a, b in combinations(promises, 2)
        if max(a.start, b.start) < min(a.end, b.end)
    ]
