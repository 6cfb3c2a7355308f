"""Fences of the pools that floating IPs are lent to: the highest token of each. All names begin with compute_."""

from sqlalchemy import BigInteger, Column, Table, Text

from climate.compute.store.columns import metadata, time

loans = Table(
    "compute_address_loans",
    metadata,
    Column("pool", Text, primary_key=True),
    Column("fence", BigInteger, nullable=False),
    time("updated_at"),
)
"""The highest token of each pool, kept after its addresses are deleted to refuse late workers."""
