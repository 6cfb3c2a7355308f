"""How a value fits what an extra spec asks of it: `>= 4`, `<in> avx`, `<or> a <or> b` (cloud.md C.4)."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

Holds = Callable[[Any, str], bool]


def _numbers(holds: Callable[[float, float], bool]) -> Holds:
    """Compared as numbers; what is no number does not fit."""

    def compare(value: Any, operand: str) -> bool:
        try:
            return holds(float(value), float(operand))
        except (TypeError, ValueError):
            return False

    return compare


def _texts(holds: Callable[[str, str], bool]) -> Holds:
    return lambda value, operand: holds(str(value), operand)


ONE_OPERAND: dict[str, Holds] = {
    "=": _numbers(operator.ge),  # known and relied upon as "at least"
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
"""They read the word behind them; what follows that is not looked at."""


def match(value: str | Sequence[str] | None, wanted: str) -> bool:
    """Whether `value` fits; without an operator in front both must be the same text.

    `>` and `<` alone are no operators.  No value fits no operator.
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
