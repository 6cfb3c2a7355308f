"""Conventions of the bundled cloud's tables: their metadata, and columns of the usual kinds."""

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Integer,
    MetaData,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from climate.database.sql_arrays import in_array, in_parameter
from climate.database.transaction_ids import changed

__all__ = ["changed", "count", "in_array", "in_parameter", "json", "metadata", "sql_of", "taken", "time", "uuid"]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def uuid(
    name: str, *, made: bool = False, key: bool = False, nullable: bool = True, unique: bool = False
) -> Column[str]:
    return Column(
        name,
        UUID(as_uuid=False),
        primary_key=key,
        nullable=nullable and not key,
        unique=unique or None,
        server_default=func.gen_random_uuid() if made else None,
    )


def time(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=nullable, server_default=None if nullable else func.clock_timestamp()
    )


def json(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def taken(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def sql_of(columns: Iterable[Column[object]], alias: str) -> str:
    """Return the SQL that selects these columns of a table in a statement that is text; ids are text, as in Core."""
    return ", ".join(f"{alias}.{column.name}{'::text' if isinstance(column.type, UUID) else ''}" for column in columns)
