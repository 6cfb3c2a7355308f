"""Tables of the journal check: its progress, and the streams that differ from their rows."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Table,
    Text,
    Uuid,
)

from climate.store.schema import Time, metadata

journal_checks = Table(
    "journal_checks",
    metadata,
    Column("one_row", Boolean, CheckConstraint("one_row", name="one_row"), primary_key=True),
    Column("after", Uuid, nullable=False),
    Column("began_at", Time, nullable=False),
    Column("streams", BigInteger, nullable=False),
    Column("whole_since", Time),
)
"""One row: progress of the present pass of the journal check, and the start of the last one."""

journal_differences = Table(
    "journal_differences",
    metadata,
    Column("stream", Uuid, primary_key=True),
    Column("found_at", Time, nullable=False),
    Column("what", Text, nullable=False),
)
"""Streams that differed from their rows in their last comparison."""
