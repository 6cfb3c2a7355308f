"""Tables of inventories (pools of countable resources, such as storage) and their allocations."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import TSTZRANGE

from climate.store.schema import Time, metadata

IN_FORCE = "state IN ('held', 'active')"
REGISTERED = "removed_at IS NULL"

inventories = Table(
    "inventories",
    metadata,
    Column("number", BigInteger, Identity(), primary_key=True),
    Column("id", Uuid, nullable=False, unique=True, server_default=text("gen_random_uuid()")),
    Column("resource_type", Text, nullable=False),
    Column("resource_class", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Backend in the cloud.
    Column("backend", Text, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("closed", Boolean, nullable=False, server_default="false"),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    Column("removed_at", Time),
    CheckConstraint("total > 0", name="has_something"),
    Index("uq_inventories_name", "resource_type", "name", unique=True, postgresql_where=text(REGISTERED)),
    Index("uq_inventories_backend", "resource_type", "backend", unique=True, postgresql_where=text(REGISTERED)),
)
"""An inventory that is no longer registered keeps its row, because the history of leases refers to its number."""

inventory_allocations = Table(
    "inventory_allocations",
    metadata,
    Column("reservation_id", ForeignKey("reservations.id"), primary_key=True),
    Column("number", ForeignKey("inventories.number"), primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("during", TSTZRANGE, nullable=False),
    Column("state", Text, nullable=False),
    CheckConstraint("amount > 0", name="holds_something"),
    CheckConstraint("state IN ('held', 'active', 'released')", name="state_known"),
    # An empty range overlaps nothing and would never count.
    CheckConstraint(
        "NOT isempty(during) AND lower_inc(during) AND NOT upper_inc(during)"
        " AND NOT lower_inf(during) AND NOT upper_inf(during)",
        name="during_is_bounded",
    ),
    Index("ix_inventory_allocations_number_start", "number", text("lower(during)"), postgresql_where=text(IN_FORCE)),
)
