"""Versions of hypervisors: numbers like 6002000 for 6.2.0, and requirements like `>=6.0,<6.2`."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence

from climate.compute.errors import BadRequest

Version = tuple[int, ...]

COMPARISONS: dict[str, Callable[[Version, Version], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_BOUND = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9}){0,9})\s*")

Bound = tuple[str, Version]


def parse(text: str) -> tuple[Bound, ...]:
    """Return the bounds of a text like `>=6.0,<6.2`. Raise BadRequest."""
    result = [_BOUND.fullmatch(part) for part in text.split(",")]
    if not all(result):
        raise BadRequest(f"The image requires the hypervisor version {text[:100]!r}; it must be like '>=6.0,<6.2'.")
    return tuple((bound[1], _trimmed(map(int, bound[2].split(".")))) for bound in result if bound)


def within(number: int, bounds: Sequence[Bound]) -> bool:
    """Return whether a version, with three digits per part, satisfies all bounds."""
    version = _trimmed(_parts(number))
    return all(COMPARISONS[word](version, other) for word, other in bounds)


def _parts(number: int) -> list[int]:
    parts: list[int] = []
    while number > 0:
        number, part = divmod(number, 1000)
        parts.insert(0, part)
    return parts


def _trimmed(parts: Iterable[int]) -> Version:
    """Return the parts without trailing zeros: 6.0 is 6."""
    result = list(parts)
    while result and result[-1] == 0:
        result.pop()
    return tuple(result)
