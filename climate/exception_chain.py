"""Causes of an exception."""

from collections.abc import Iterator


def of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, its cause or context, and so on to the first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
