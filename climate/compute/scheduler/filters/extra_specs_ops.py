"""Operators of extra specs: `>= 4`, `<in> avx`, `<or> a <or> b`, as in Nova's extra_specs_ops."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

Holds = Callable[[Any, str], bool]


def _numbers(holds: Callable[[float, float], bool]) -> Holds:
    """Compare as numbers; other values never match."""

    def compare(value: Any, operand: str) -> bool:
        try:
            return holds(float(value), float(operand))
        except (TypeError, ValueError):
            return False

    return compare


def _texts(holds: Callable[[str, str], bool]) -> Holds:
    return lambda value, operand: holds(str(value), operand)


ONE_OPERAND: dict[str, Holds] = {
    "=": _numbers(operator.ge),  # "=" means "at least" in Nova, and flavors rely on it
    "==": _numbers(operator.eq),
    "!=": _numbers(operator.ne),
    ">=": _numbers(operator.ge),
    "<=": _numbers(operator.le),
    "s==": _texts(operator.eq),
    "s!=": _texts(operator.ne),
    "s<": _texts(operator.lt),
    "s<=": _texts(operator.le),
    "s>": _texts(operator.gt),
    "s>=": _texts(operator.ge),
    "<in>": lambda value, operand: operand in value,
}
"""Operators of one operand; further words are ignored."""


def match(value: str | Sequence[str] | None, wanted: str) -> bool:
    """Return whether `value` matches; without an operator both must be equal text.

    `>` and `<` alone are not operators. A missing value matches no operator.
    """
    words = wanted.split()
    word, operands = (words[0], words[1:]) if words else ("", [])
    if word not in ONE_OPERAND and word not in ("<all-in>", "<or>"):
        return value == wanted
    if value is None or not operands:
        return False
    if word == "<all-in>":
        return all(operand in value for operand in operands)
    if word == "<or>":
        return value in operands[::2]
    return ONE_OPERAND[word](value, operands[0])
