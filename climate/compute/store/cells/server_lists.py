"""Lists of the servers of all cells, in the database of the top cell."""

from climate.compute.store.cells import servers
from climate.compute.store.servers.lists import CONDITIONS, ORDERS, Source

ALL_CELLS = Source(
    columns=servers.COLUMNS,
    rows=servers.FROM,
    conditions={
        **CONDITIONS,
        # A host of another cell is named by the path to that cell only.
        "host": "s.cell = :host",
        "node": "s.cell || '@' || s.place = :node",
        "zone": "s.zone = :zone",
        "ip": "EXISTS (SELECT FROM jsonb_array_elements(s.addresses) AS a WHERE a ->> 'address' ~ :ip)",
    },
    orders={
        **ORDERS,
        "host": "coalesce(s.cell, '')",
        "node": "coalesce(s.place, '')",
        "availability_zone": "coalesce(s.zone, '')",
    },
    read=servers.server_of,
    always="s.deleted_at IS NULL",
)
"""The servers of all cells that are not deleted."""
