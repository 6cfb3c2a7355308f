"""Work on many items in turn: the failure of one is logged, and stops no other.

An error that every further item would meet as well is raised at once: the database is away, or has no resources.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import structlog

from climate.compute.store import db_errors

T = TypeVar("T")

log = structlog.get_logger(__name__)

LONGEST_REASON = 300


def each(what: str, items: Iterable[T], act: Callable[[T], object], name: Callable[[T], object] = str) -> list[T]:
    """Call `act` for each item; return the items for which it failed.

    `what` names the work and `name` an item in the log. Raises an error of the database that concerns all items.
    """
    return [item for item in items if attempt(what, name(item), partial(act, item)) is not None]


def steps(what: str, wanted: Iterable[tuple[str, Callable[[], object]]]) -> list[str]:
    """Take each of these named steps, as `each` does; return the names of those that failed."""
    return [name for name, _ in each(what, wanted, lambda one: one[1](), lambda one: one[0])]


def attempt(
    what: str, name: object, act: Callable[[], object], at_once: tuple[type[Exception], ...] = ()
) -> str | None:
    """Act for one item as `each` does; return None, or the reason of its failure.

    `at_once`: further errors that every other item would meet as well, and that are raised.
    """
    try:
        act()
    except at_once:
        raise
    except Exception as error:
        if db_errors.unusable(error):
            raise
        reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        if db_errors.is_conflict(error):
            log.warning(f"{what}: put off", item=str(name), reason=type(error).__name__)
        else:
            log.exception(f"{what}: failed", item=str(name))
        return reason
    return None
