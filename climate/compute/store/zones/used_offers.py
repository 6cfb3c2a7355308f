"""Offers of this zone that parents have used: each is valid for one server."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, delete, exists, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.compute.store.tables.servers import servers
from climate.compute.store.tables.zone_builds import zone_offers
from climate.compute.store.tables.zones import zone_servers
from climate.database.advisory_locks import Subject
from climate.database.batch_delete import drop

UNKNOWN_KEPT = timedelta(days=1)
"""Time after its expiry for which an offer without an answer of its child is kept."""

_ALONE = text(Subject.ZONE_OFFER.lock("name"))


@dataclass(frozen=True, slots=True)
class UsedOffer:
    """A used offer and its server."""

    item_id: str
    build_id: str
    launch_index: int
    server_id: str | None
    """None: the child that was asked has not answered yet."""


_COLUMNS = (zone_offers.c.item_id, zone_offers.c.build_id, zone_offers.c.launch_index, zone_offers.c.server_id)


def find(conn: Connection, project_id: str, build_id: str, launch_index: int) -> UsedOffer | None:
    """Return the offer that a server of a build was created with; None if there is none."""
    mine = (zone_offers.c.project_id == project_id, zone_offers.c.build_id == build_id)
    row = conn.execute(select(*_COLUMNS).where(*mine, zone_offers.c.launch_index == launch_index)).one_or_none()
    return UsedOffer(*row) if row else None


def lock(conn: Connection, project_id: str, build_id: str, launch_index: int) -> None:
    """Serialize the creation of this server of a build until the end of the transaction."""
    conn.execute(_ALONE, {"name": f"{project_id} {build_id} {launch_index}"})


def use(conn: Connection, values: Mapping[str, object]) -> bool:
    """Record that an offer is used; False if it was used before."""
    made = upsert(zone_offers).values(**values).on_conflict_do_nothing().returning(zone_offers.c.item_id)
    return conn.execute(made).first() is not None


def settle(conn: Connection, item_id: str, server_id: str) -> None:
    """Record the server that a child has created by an offer."""
    conn.execute(update(zone_offers).where(zone_offers.c.item_id == item_id).values(server_id=server_id))


def release(conn: Connection, item_id: str) -> None:
    """Make an offer usable again that created nothing."""
    conn.execute(delete(zone_offers).where(zone_offers.c.item_id == item_id, zone_offers.c.server_id.is_(None)))


def of_build(conn: Connection, project_id: str, build_id: str) -> list[Mapping[str, object]]:
    """Return the servers created here of a build of a parent: launch_index, server_id, owner_project, owner_user."""
    columns = [zone_offers.c[name] for name in ("launch_index", "server_id", "owner_project", "owner_user")]
    mine = (zone_offers.c.project_id == project_id, zone_offers.c.build_id == build_id)
    query = select(*columns).where(*mine, zone_offers.c.server_id.is_not(None))
    return [dict(row) for row in conn.execute(query.order_by(zone_offers.c.launch_index)).mappings()]


def sweep(conn: Connection, now: datetime) -> int:
    """Delete a portion of the expired offers of deleted servers; return their number."""
    offer = zone_offers.c
    here = exists().where(servers.c.id == offer.server_id)
    below = exists().where(zone_servers.c.server_id == offer.server_id)
    gone = offer.server_id.is_not(None) & ~here & ~below
    unknown = offer.server_id.is_(None) & (offer.expires_at < now - UNKNOWN_KEPT)
    return drop(conn, zone_offers, and_(offer.expires_at < now, or_(gone, unknown)))
