"""Tables of reservable floating IPs and their allocations."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Index, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import INET, TSTZRANGE, ExcludeConstraint

from climate.store.schema import Time, metadata

IN_FORCE = "state IN ('held', 'active')"

floating_ips = Table(
    "floating_ips",
    metadata,
    Column("number", BigInteger, Identity(), primary_key=True),
    Column("id", Uuid, nullable=False, unique=True, server_default=text("gen_random_uuid()")),
    Column("network_id", Text, nullable=False),
    Column("subnet_id", Text, nullable=False),
    Column("address", INET, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    Column("removed_at", Time),
    CheckConstraint("number BETWEEN 1 AND 9223372036854775806", name="number_has_a_successor"),
    Index("uq_floating_ips_address", "network_id", "address", unique=True, postgresql_where=text("removed_at IS NULL")),
)
"""An address that is no longer registered keeps its row, because the history of leases refers to its number."""

floating_allocations = Table(
    "floating_allocations",
    metadata,
    Column("reservation_id", ForeignKey("reservations.id"), primary_key=True),
    Column("number", ForeignKey("floating_ips.number"), primary_key=True),
    Column("during", TSTZRANGE, nullable=False),
    Column("state", Text, nullable=False),
    CheckConstraint("state IN ('held', 'active', 'released')", name="state_known"),
    # An empty range overlaps nothing and an unbounded one everything; the guard below admits neither.
    CheckConstraint(
        "NOT isempty(during) AND lower_inc(during) AND NOT upper_inc(during)"
        " AND NOT lower_inf(during) AND NOT upper_inf(during)",
        name="during_is_bounded",
    ),
    # Needs no extension, because a number is a range of one.
    ExcludeConstraint(
        (text("int8range(number, number, '[]')"), "&&"),
        ("during", "&&"),
        name="one_reservation_at_a_time",
        where=text(IN_FORCE),
    ),
    Index("ix_floating_allocations_number_start", "number", text("lower(during)"), postgresql_where=text(IN_FORCE)),
)
