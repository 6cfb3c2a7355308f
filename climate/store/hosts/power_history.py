"""Power history of hosts, from their journals."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Connection, Select, cast, select
from sqlalchemy.dialects.postgresql import distinct_on

from climate.store.schema import Time
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import journal


@dataclass(frozen=True, slots=True)
class Switches:
    """Changes (time, on) of each host with power management until then, and the names of the hosts."""

    history: Mapping[int, Sequence[tuple[datetime, bool]]]
    names: Mapping[int, str]


def between(conn: Connection, start: datetime, end: datetime) -> Switches:
    """Return all changes within the period, and the last one before it."""
    history: dict[int, list[tuple[datetime, bool]]] = defaultdict(list)
    names: dict[int, str] = {}
    latest = _SWITCHES.where(start >= _AT).order_by(hosts.c.id, journal.c.version.desc())
    earlier = latest.ext(distinct_on(hosts.c.id))
    within = _SWITCHES.where(start < _AT, end > _AT).order_by(hosts.c.id, journal.c.version)
    for query in (earlier, within):
        for row in conn.execute(query):
            history[row.id].append((row.at, row.on))
            names[row.id] = row.name
    return Switches(history, names)


_AT = cast(journal.c.body["at"].astext, Time)
_SWITCHES: Select[object] = (
    select(
        hosts.c.id,
        hosts.c.hypervisor_hostname.label("name"),
        _AT.label("at"),
        cast(journal.c.body["on"].astext, Boolean).label("on"),
    )
    .join(journal, journal.c.stream == hosts.c.stream)
    .where(journal.c.kind == "HostSwitched")
)
