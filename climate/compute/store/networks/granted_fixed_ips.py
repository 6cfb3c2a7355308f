"""Fixed addresses that are granted to servers without rows yet, and held by the grant."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select, text, update

from climate.compute.store.columns import in_array
from climate.compute.store.tables.networks import addresses, vifs
from climate.database.advisory_locks import Subject

# Two processes may handle one message at once: the second one finds the addresses that the first has held.
_ALONE = text(Subject.NETWORK_GRANT.lock("grant_id"))

_HOLD = text("""
    UPDATE compute_addresses a
    SET server_id = w.server_id, mac = w.mac, grant_id = CAST(:grant_id AS uuid), leased = false, changed_at = :now
    FROM (SELECT f.address, s.server_id, s.mac
          FROM (SELECT address, row_number() OVER (ORDER BY address) AS place
                FROM (SELECT address FROM compute_addresses
                      WHERE network_id = CAST(:network_id AS uuid) AND server_id IS NULL AND NOT reserved
                      ORDER BY address LIMIT :count FOR NO KEY UPDATE SKIP LOCKED) AS free) AS f
          JOIN unnest(CAST(:server_ids AS uuid[]), CAST(:macs AS text[])) WITH ORDINALITY AS s(server_id, mac, place)
          USING (place)) AS w
    WHERE a.network_id = CAST(:network_id AS uuid) AND a.address = w.address
    RETURNING a.server_id::text, host(a.address)
""")

# An address in an allocator's own records is free here; an address without a grant is not taken from its server.
_RECORD = text("""
    UPDATE compute_addresses a
    SET server_id = g.server_id, vif_id = v.id, mac = v.mac, leased = false, grant_id = NULL, changed_at = :now
    FROM unnest(CAST(:server_ids AS uuid[]), CAST(:addresses AS inet[])) AS g(server_id, address)
    JOIN compute_vifs v ON v.server_id = g.server_id AND v.network_id = CAST(:network_id AS uuid)
                           AND v.project_id IS NULL
    WHERE a.network_id = v.network_id AND a.address = g.address
      AND (a.server_id IS NULL AND (:reserved OR NOT a.reserved)
           OR a.server_id = g.server_id AND a.grant_id = CAST(:grant_id AS uuid))
    RETURNING a.server_id::text
""")


def alone(conn: Connection, grant_id: str) -> None:
    """Serialize the work on a grant until the end of the transaction."""
    conn.execute(_ALONE, {"grant_id": grant_id})


def addresses_of(conn: Connection, grant_id: str, network_id: str) -> dict[str, str]:
    """Return the addresses that a grant holds in a network: server id -> address."""
    query = select(addresses.c.server_id, func.host(addresses.c.address)).where(_is_held(grant_id, network_id))
    return _pairs(conn.execute(query))


def hold_free(
    conn: Connection, grant_id: str, network_id: str, macs: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """Hold a free address for each server, by its id and its future MAC; return those held, perhaps fewer."""
    given = {"grant_id": grant_id, "network_id": network_id, "now": now, "count": len(macs)}
    return _pairs(conn.execute(_HOLD, {**given, "server_ids": list(macs), "macs": list(macs.values())}))


def hold_address(
    conn: Connection, grant_id: str, network_id: str, wanted: Mapping[str, str | bool], now: datetime
) -> bool:
    """Hold this address; False if it is taken. `wanted`: server_id, mac, address, reserved."""
    row = addresses.c
    free = and_(row.server_id.is_(None), or_(literal(wanted["reserved"]), ~row.reserved))
    statement = (
        update(addresses)
        .where(row.network_id == network_id, row.address == wanted["address"], free)
        .values(server_id=wanted["server_id"], mac=wanted["mac"], grant_id=grant_id, leased=False, changed_at=now)
        .returning(row.address)
    )
    return conn.execute(statement).first() is not None


def release(conn: Connection, grant_id: str, network_id: str, server_ids: Sequence[str], now: datetime) -> None:
    """Free the addresses that a grant still holds for these servers; recorded ones are kept."""
    addresses_of = update(addresses).where(_is_held(grant_id, network_id), in_array(addresses.c.server_id, server_ids))
    conn.execute(addresses_of.values(server_id=None, grant_id=None, changed_at=now))


def record(
    conn: Connection,
    grant_id: str,
    network_id: str,
    granted: Mapping[str, str],
    now: datetime,
    *,
    reserved: bool = False,
) -> set[str]:
    """Record granted addresses on the interfaces of servers; return the servers for which this succeeded."""
    given = {"grant_id": grant_id, "network_id": network_id, "now": now, "reserved": reserved}
    rows = conn.execute(_RECORD, {**given, "server_ids": list(granted), "addresses": list(granted.values())})
    return set(rows.scalars())


def macs_in_use(conn: Connection, macs: Sequence[str]) -> set[str]:
    """Return those of these MACs that an interface has, or will have."""
    own = select(vifs.c.mac).where(in_array(vifs.c.mac, macs))
    future = select(addresses.c.mac).where(addresses.c.grant_id.is_not(None), in_array(addresses.c.mac, macs))
    return set(conn.scalars(own.union(future)))


def recorded(conn: Connection, network_id: str) -> dict[str, str]:
    """Return address -> server id, of all allocated ones of a network that no grant holds."""
    row = addresses.c
    query = select(func.host(row.address), row.server_id).where(
        row.network_id == network_id, row.server_id.is_not(None), row.grant_id.is_(None)
    )
    return _pairs(conn.execute(query))


def _pairs(rows: Iterable[Any]) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in rows}


def _is_held(grant_id: str, network_id: str) -> ColumnElement[bool]:
    return and_(addresses.c.grant_id == grant_id, addresses.c.network_id == network_id)
