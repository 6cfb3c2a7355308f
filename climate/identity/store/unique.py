"""Translation of violated constraints into errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict


@contextmanager
def begin(engine: Engine, clash: str) -> Iterator[Connection]:
    """Begin a transaction that raises Conflict with the text `clash` for a taken name or a deleted row."""
    with translated({}, Conflict(clash)), engine.begin() as conn:
        yield conn
