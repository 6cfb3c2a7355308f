"""Constraints of the database that refuse a row, such as for a taken name: translation into the errors of callers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError


@contextmanager
def translated(refusals: Mapping[str, Exception], otherwise: Exception | None = None) -> Iterator[None]:
    """Raise the error that belongs to the name of a violated constraint, or `otherwise` for one without.

    Without `otherwise` the IntegrityError of another constraint is raised as it is.
    """
    try:
        yield
    except IntegrityError as error:
        refusal = refusals.get(constraint(error), otherwise)
        if refusal is None:
            raise
        raise refusal from error


def constraint(error: DBAPIError) -> str:
    """Return the name of the violated constraint, or an empty text."""
    return getattr(getattr(error.orig, "diag", None), "constraint_name", None) or ""
