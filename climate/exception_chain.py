"""What an error comes of."""

from collections.abc import Iterator


def of(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it was raised from or while dealing with, and so on to the first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
