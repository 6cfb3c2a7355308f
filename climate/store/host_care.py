"""What hosts are like and how they are switched, as the rows say; compared with their facts, and made of them anew."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, delete, select, update

from climate.domain import host_care
from climate.domain.host_care import HostCare, Wired
from climate.domain.pools import HostPlace
from climate.store import journal, tampering
from climate.store.care_tables import host_power
from climate.store.tables import hosts

_ALL: Select[Any] = (
    select(
        hosts.c.stream,
        hosts.c.extra,
        host_power.c.driver,
        host_power.c.settings,
        host_power.c.watts,
        host_power.c.secrets,
    )
    .select_from(hosts.outerjoin(host_power, host_power.c.host == hosts.c.id))
    .order_by(hosts.c.stream)
)


def everywhere(conn: Connection) -> Iterator[tuple[UUID, HostCare]]:
    """Every host there ever was, in the order of their streams; read in portions."""
    for row in conn.execute(_ALL, execution_options={"yield_per": 500}):
        yield row.stream, _care(row)


def refuse_tampered(conn: Connection, place: HostPlace) -> None:
    """Return when the rows of a host, locked before, are what its facts say, else raise Tampered."""
    tampering.refuse_places(conn, [place])
    row = conn.execute(_ALL.where(hosts.c.id == place.host)).one()
    known = host_care.fold(journal.of_host(journal.read(conn, place.stream)))
    tampering.refuse(f"host {place.name}", _care(row), known)


def rewrite(conn: Connection, folded: Iterable[tuple[UUID, HostCare]]) -> None:
    """Write rows as the facts say.  Secrets are in no fact: a supply that is gone comes back without them."""
    for stream, care in folded:
        host = conn.execute(select(hosts.c.id, hosts.c.created_at).where(hosts.c.stream == stream)).one_or_none()
        if host is None:
            continue
        conn.execute(update(hosts).where(hosts.c.id == host.id).values(extra=dict(care.extra)))
        _rewrite_power(conn, host, care.power)


def _rewrite_power(conn: Connection, host: Any, power: Wired | None) -> None:
    if power is None:
        conn.execute(delete(host_power).where(host_power.c.host == host.id))
        return
    told: Mapping[str, Any] = {"driver": power.driver, "settings": dict(power.settings), "watts": power.watts}
    if conn.execute(update(host_power).where(host_power.c.host == host.id).values(told)).rowcount == 0:
        conn.execute(host_power.insert().values(host=host.id, secrets="", created_at=host.created_at, **told))


def _care(row: Any) -> HostCare:
    power = Wired(row.driver, row.settings, row.watts, bool(row.secrets)) if row.driver else None
    return HostCare(row.extra, power)
