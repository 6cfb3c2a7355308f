"""Properties and power settings of hosts, compared with their facts and rebuilt from them."""

from sqlalchemy import Connection, Row, Select, select

from climate.domain.hosts import folded_host
from climate.domain.hosts.folded_host import HostCare, HostPowerSettings
from climate.domain.hosts.pools import HostPlace
from climate.store.journal import journal
from climate.store.leases import row_consistency
from climate.store.tables.hosts import host_power, hosts

_ALL: Select[*tuple[object, ...]] = (
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


def refuse_tampered(conn: Connection, place: HostPlace) -> None:
    """Raise Tampered unless the locked rows of a host match its facts."""
    row_consistency.refuse_places(conn, [place])
    row = conn.execute(_ALL.where(hosts.c.id == place.host)).one()
    known = folded_host.fold(journal.of_host(journal.read(conn, place.stream)))
    row_consistency.refuse(f"host {place.name}", _settings_of(row), known)


def _settings_of(row: Row[*tuple[object, ...]]) -> HostCare:
    power = HostPowerSettings(row.driver, row.settings, row.watts, bool(row.secrets)) if row.driver else None
    return HostCare(row.extra, power)
