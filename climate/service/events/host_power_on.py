"""Power-on of the hosts of a lease before it starts."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import NotYet
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace
from climate.domain.period import Period
from climate.service.power import power_saving
from climate.settings import Settings
from climate.store.hosts import power

log = structlog.get_logger(__name__)


def is_soon(settings: Settings, period: Period, now: datetime) -> bool:
    """Return whether there is less time than hosts have to come up."""
    return period.start < now + timedelta(seconds=settings.power_on_lead)


def due_at(
    conn: Connection, settings: Settings, period: Period, hosts: Collection[int], now: datetime
) -> datetime | None:
    """Return the due time of prepare_lease; None if no host of the lease is ever switched off, or it starts at once."""
    if not settings.idle_off_after or period.start <= now or not power.managed(conn, hosts):
        return None
    return max(now, period.start - timedelta(seconds=settings.power_on_lead))


def ensure_powered_on(climate: Climate, held: Sequence[HostPlace]) -> None:
    """Switch the hosts on, and raise NotYet until all of them are up.

    A host that does not come up in time has failed: it is not waited for, and healing replaces it. Owners read
    why their lease waits, but the names and errors of hosts are for admins.
    """
    if missing := power_saving.switch_on(climate, held):
        log.info("hosts still powering on", hosts={place.name: said for place, said in missing.items()})
        raise NotYet("1 host is coming up" if len(missing) == 1 else f"{len(missing)} hosts are coming up")
