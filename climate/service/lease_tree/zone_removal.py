"""Check for leases before a child zone is removed."""

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Conflict
from climate.store.leases import parts


def refuse_if_leased(climate: Climate, zone_id: int) -> None:
    """Return if no lease has a part in a child zone; otherwise raise Conflict with their number and the fix."""
    with reading(climate.engine) as conn:
        count = parts.leases_in_zone(conn, zone_id)
    if count:
        some = "1 lease has" if count == 1 else f"{count} leases have"
        raise Conflict(
            f"Zone {zone_id} cannot be removed: {some} hosts there. Delete them or wait for their end, "
            "or give force=true, which gives up what they have there"
        )
