"""The number of the transaction that has last written a row: readers look only at what has changed since."""

from typing import Any

from sqlalchemy import Column, func
from sqlalchemy.types import UserDefinedType


class Xid8(UserDefinedType[int]):
    """The number of a transaction, which never comes again."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


def changed() -> Column[int]:
    """The transaction that has last written the row: what a snapshot is brought up to date by."""
    return Column("changed", Xid8(), nullable=False, index=True, server_default=func.pg_current_xact_id())
