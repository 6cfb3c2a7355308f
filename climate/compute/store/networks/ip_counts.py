"""Usage of the addresses of networks and of floating pools."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

_FIGURES = text("""
    SELECT n.id::text, n.label AS name, n.subnet_id::text, n.cidr::text, n.project_id, f.total, f.used
    FROM compute_networks n CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE NOT a.reserved) AS total, count(a.server_id) AS used
        FROM compute_addresses a WHERE a.network_id = n.id) AS f
    UNION ALL
    SELECT p.id::text, p.name, p.subnet_id::text, p.cidr::text, NULL, f.total, f.used
    FROM compute_floating_pools p CROSS JOIN LATERAL (
        SELECT count(*) AS total, count(a.project_id) AS used
        FROM compute_floating_addresses a WHERE a.pool_id = p.id) AS f
    ORDER BY name, id
""")


@dataclass(frozen=True, slots=True)
class IpCount:
    """The numbers of addresses of a network, or of a pool of floating ones."""

    id: str
    name: str
    subnet_id: str
    cidr: str
    project_id: str | None
    total: int
    used: int


def listed(conn: Connection) -> list[IpCount]:
    """Return the numbers of addresses of each network and pool, in the order of their names."""
    return [IpCount(*row) for row in conn.execute(_FIGURES)]
