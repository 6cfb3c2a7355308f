"""Tables of the engine. Importing the package declares all of them in `metadata`."""

from climate.store.schema import metadata
from climate.store.tables import (
    archives,
    calendar_feeds_and_mail,
    floating_ips,
    hosts,
    inventories,
    journal_checks,
    leases,
    limits_and_notices,
    series,
    usage,
)

__all__ = [
    "archives",
    "calendar_feeds_and_mail",
    "floating_ips",
    "hosts",
    "inventories",
    "journal_checks",
    "leases",
    "limits_and_notices",
    "metadata",
    "series",
    "usage",
]
