"""Parts of leases in rows, and queries for them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from climate.domain.lease_part import Part
from climate.domain.status import PartState

_IN_ZONE = text("""
    SELECT count(DISTINCT l.id)
    FROM leases l JOIN reservations r ON r.lease_id = l.id CROSS JOIN LATERAL jsonb_array_elements(r.parts) p
    WHERE NOT l.gone AND r.parts <> '[]' AND p ->> 'state' <> 'released'
        AND coalesce(p ->> 'cell', '') = '' AND (p ->> 'zone_id')::int = :zone_id
""")


def leases_in_zone(conn: Connection, zone_id: int) -> int:
    """Return the number of leases with a part, or a requested part, in a child zone."""
    return int(conn.execute(_IN_ZONE, {"zone_id": zone_id}).scalar_one())


def read(p: dict[str, Any]) -> Part:
    """Return a part as its row has it."""
    return Part(
        id=UUID(p["id"]),
        zone_id=p["zone_id"],
        zone=p["zone"],
        least=p["least"],
        most=p["most"],
        state=PartState(p["state"]),
        lease_id=UUID(p["lease_id"]) if p["lease_id"] else None,
        reservation_id=UUID(p["reservation_id"]) if p["reservation_id"] else None,
        hosts=p["hosts"],
        cell=p.get("cell", ""),
    )
