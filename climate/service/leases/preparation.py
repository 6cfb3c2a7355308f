"""Have the hosts of a lease up when it starts."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import NotYet
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace
from climate.domain.period import Period
from climate.service.power import controller
from climate.settings import Settings
from climate.store.hosts import power

log = structlog.get_logger(__name__)


def is_soon(settings: Settings, period: Period, now: datetime) -> bool:
    """Whether there is less time than hosts are given to come up."""
    return period.start < now + timedelta(seconds=settings.power_on_lead)


def due_at(
    conn: Connection, settings: Settings, period: Period, hosts: Collection[int], now: datetime
) -> datetime | None:
    """When prepare_lease is due; None where no host of the lease is ever switched off, or it starts at once."""
    if not settings.idle_off_after or period.start <= now or not power.managed(conn, hosts):
        return None
    return max(now, period.start - timedelta(seconds=settings.power_on_lead))


def bring_up(climate: Climate, held: Sequence[HostPlace]) -> None:
    """Switch the hosts on, and raise NotYet until all of them are up.

    One that does not come up in its time has failed: it is no longer waited for, others heal the lease.
    Owners read why their lease waits: which hosts it is, and what ails them, is for admins.
    """
    if missing := controller.call_up(climate, held):
        log.info("hosts are not up yet", hosts={place.name: said for place, said in missing.items()})
        raise NotYet("1 host is coming up" if len(missing) == 1 else f"{len(missing)} hosts are coming up")
