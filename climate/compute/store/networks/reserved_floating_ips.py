"""Floating addresses that are lent to pools; their rows are deleted afterwards."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Text, cast, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.floating_ip_fences import loans
from climate.compute.store.tables.networks import floating_addresses, floating_pools

_LEND = text("""
    INSERT INTO compute_floating_addresses (address, pool_id, project_id, tags, reservation, fence)
    SELECT CAST(:address AS inet), id, :project_id, CAST(:tags AS text[]), :pool, :token
    FROM (SELECT id FROM compute_floating_pools
          WHERE id = CAST(:pool_id AS uuid) AND CAST(:address AS inet) << cidr FOR SHARE) AS kept
    ON CONFLICT (address) DO UPDATE SET fence = excluded.fence
    WHERE compute_floating_addresses.reservation = excluded.reservation
    RETURNING address
""")

_TAKE_BACK = text("""
    WITH gone AS (DELETE FROM compute_floating_addresses WHERE reservation = :pool
                  RETURNING fixed_network_id, address, fixed_address)
    SELECT n.host, n.id::text AS network_id, host(gone.address) AS floating, host(gone.fixed_address) AS fixed
    FROM gone JOIN compute_networks n ON n.id = gone.fixed_network_id WHERE n.host IS NOT NULL ORDER BY gone.address
""")


@dataclass(frozen=True, slots=True)
class ExternalNetwork:
    """An external network."""

    id: str
    name: str
    subnet_id: str
    cidr: str
    gateway: str | None


def fence(conn: Connection, pool: str, token: int) -> bool:
    """Record the token of a pool, and lock its row; False if the token is outdated."""
    # Lending and taking back hold the row's lock. The row is kept for good, so that a late worker is refused by its
    # token.
    row = insert(loans).values(pool=pool, fence=token)
    statement = row.on_conflict_do_update(
        index_elements=[loans.c.pool],
        set_={"fence": row.excluded.fence, "updated_at": func.clock_timestamp()},
        where=loans.c.fence <= row.excluded.fence,
    )
    return conn.execute(statement.returning(loans.c.pool)).first() is not None


def outside(conn: Connection, network: str) -> ExternalNetwork | None:
    """Return the external network of that id or name."""
    own = floating_pools.c
    is_id = cast(own.id, Text) == network
    query = (
        select(own.id, own.name, own.subnet_id, cast(own.cidr, Text), func.host(own.gateway))
        .where(or_(is_id, own.name == network))
        .order_by(is_id.desc())
        .limit(1)
    )
    row = conn.execute(query).first()
    return ExternalNetwork(*row) if row else None


def lend(conn: Connection, loan: dict[str, object]) -> bool:
    """Create an address that is lent to a pool; False if it is taken, or outside of its network."""
    return conn.execute(_LEND, loan).first() is not None


def holder(conn: Connection, address: str) -> str | None:
    """Return the pool that an address is lent to, or None."""
    return conn.scalar(select(floating_addresses.c.reservation).where(floating_addresses.c.address == address))


class DeletedFloatingIp(NamedTuple):
    """A deleted floating address, its fixed one, and the host that served it."""

    host: str
    network_id: str
    floating: str
    fixed: str


def take_back(conn: Connection, pool: str) -> list[DeletedFloatingIp]:
    """Delete the addresses of a pool; return those that were associated."""
    return [DeletedFloatingIp(*row) for row in conn.execute(_TAKE_BACK, {"pool": pool})]
