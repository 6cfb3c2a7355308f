"""Check for work that workers must be woken for."""

from climate.compute.context import Compute
from climate.compute.store import pending_work as rows
from climate.compute.store.pending_work import Pending
from climate.database.connections import reading


def read(compute: Compute) -> Pending:
    """Return the kinds of work that may be pending, by one statement."""
    with reading(compute.engine) as conn:
        return rows.read(conn)
