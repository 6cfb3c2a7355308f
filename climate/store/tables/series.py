"""Table of series of leases."""

from sqlalchemy import Boolean, CheckConstraint, Column, Index, Integer, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from climate.store.schema import Time, metadata

lease_series = Table(
    "lease_series",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("start_date", Time, nullable=False),
    Column("end_date", Time, nullable=False),
    Column("make", Text, nullable=False),
    Column("skipped", JSONB, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    CheckConstraint("start_date < end_date", name="ends_after_start"),
    Index("ix_lease_series_listed", "project_id", "created_at", "id", postgresql_where=text("NOT gone")),
)
"""Projection of the facts of `climate.domain.planning.series`. Their occurrences are leases with a `series_id`."""
