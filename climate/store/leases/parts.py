"""Queries for parts of leases."""

from sqlalchemy import Connection, text

_IN_ZONE = text("""
    SELECT count(DISTINCT l.id)
    FROM leases l JOIN reservations r ON r.lease_id = l.id CROSS JOIN LATERAL jsonb_array_elements(r.parts) p
    WHERE NOT l.gone AND r.parts <> '[]' AND p ->> 'state' <> 'released'
        AND coalesce(p ->> 'cell', '') = '' AND (p ->> 'zone_id')::int = :zone_id
""")


def leases_in_zone(conn: Connection, zone_id: int) -> int:
    """Return the number of leases with a part, or a requested part, in a child zone."""
    return int(conn.execute(_IN_ZONE, {"zone_id": zone_id}).scalar_one())
