"""What a broken constraint means to whoever asked."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from climate.domain.errors import Conflict


@contextmanager
def begin(engine: Engine, clash: str) -> Iterator[Connection]:
    """A transaction in which a name that is taken, or a row that has just gone, is Conflict with the text `clash`."""
    try:
        with engine.begin() as conn:
            yield conn
    except IntegrityError:
        raise Conflict(clash) from None
