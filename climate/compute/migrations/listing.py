"""Migrations of servers, as administrators list them."""

from collections.abc import Mapping

from climate.compute.context import Compute
from climate.compute.errors import NotFound
from climate.compute.models.migration import Migration
from climate.compute.store.servers import migration_lists as rows
from climate.database.connections import reading


def listed(compute: Compute, wanted: Mapping[str, object], limit: int, after: str | None = None) -> list[Migration]:
    """Return migrations that match all of `wanted` (the store's COLUMNS_OF and CONDITIONS), newest first.

    `after`: the uuid of the last migration of the page before; NotFound if it does not exist.
    """
    with reading(compute.engine) as conn:
        if after is None:
            return rows.listed(conn, wanted, limit)
        marker = rows.listed(conn, {"uuid": after}, 1)
        if not marker:
            raise NotFound(f"Migration {after} could not be found.")
        return rows.listed(conn, wanted, limit, marker[0])
