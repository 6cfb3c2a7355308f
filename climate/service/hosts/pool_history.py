"""The pools as they were at a past time."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import InvalidInput
from climate.domain.hosts.pools import Pool
from climate.domain.policy import Caller, require
from climate.store.hosts import pool_history
from climate.store.hosts.pool_history import PastPlace


def at(climate: Climate, caller: Caller, moment: datetime) -> Mapping[Pool, Sequence[PastPlace]]:
    """Return the hosts of each pool at a time, in the order of the pools. Raise InvalidInput for a time to come."""
    require(caller, "pools:get")
    with reading(climate.engine) as conn:
        if moment > climate.now(conn):
            raise InvalidInput(f"{moment:%Y-%m-%d %H:%M} UTC is still to come: choose a time in the past")
        known = pool_history.then(conn, moment)
    return {pool: [place for place in known if place.pool == pool] for pool in Pool}
