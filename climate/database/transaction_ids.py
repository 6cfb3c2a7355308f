"""Id of the transaction that has last written a row, so that readers read only what has changed since."""

from sqlalchemy import Column, func
from sqlalchemy.types import UserDefinedType


class Xid8(UserDefinedType[int]):
    """Id of a transaction, which is never reused."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


def changed() -> Column[int]:
    """Return the column with the last transaction of the row, which readers compare with their snapshot."""
    return Column("changed", Xid8(), nullable=False, index=True, server_default=func.pg_current_xact_id())
