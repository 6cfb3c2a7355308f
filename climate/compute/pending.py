"""A glance at all for which workers may have to be rung."""

from climate.compute.context import Compute
from climate.compute.store import pending as rows
from climate.compute.store.pending import Pending
from climate.connections import reading


def look(compute: Compute) -> Pending:
    """Return what there may be to ring for; one statement."""
    with reading(compute.engine) as conn:
        return rows.look(conn)
