"""Requirements on hosts as JSON: `["and", [">=", "$free_ram_mb", 1024], ["in", "$hypervisor_type", "qemu"]]`.

Queries are parsed before scheduling and evaluated on all hosts at once, with the semantics of Nova's JsonFilter. `or`
is true if any argument is truthy, `and` if all are, and `not` is a list of negations. A final list passes if any of
its elements is true. Variables that a host lacks, and empty texts, are left out of the arguments.
"""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np

from climate.compute.errors import BadRequest
from climate.compute.scheduler.hosts.table import Mask

MAX_DEPTH = 16
MAX_TERMS = 100
"""Maximum number of terms. Each costs about one microsecond per host: half a second for 10,000 hosts."""

Path = tuple[str, ...]
"""Path of a variable: `$service.disabled` is ("service", "disabled")."""

Look = Callable[[Path], object]
"""Function that returns a host's value at a path, or None."""


@dataclass(frozen=True, slots=True)
class Variable:
    path: Path


@dataclass(frozen=True, slots=True)
class Literal:
    value: object


@dataclass(frozen=True, slots=True)
class Call:
    """Operator and its arguments."""

    op: str
    arguments: tuple["Variable | Literal | Call", ...]


Term = Variable | Literal | Call


def _each(holds: Callable[[Any, Any], Any]) -> Callable[[Sequence[object]], bool]:
    """Compare the first argument with each other one; values of different types never match."""

    def compare(values: Sequence[object]) -> bool:
        try:
            return len(values) > 1 and all(holds(values[0], value) for value in values[1:])
        except TypeError:
            return False

    return compare


OPERATORS: dict[str, Callable[[Sequence[object]], object]] = {
    "=": _each(operator.eq),
    "<": _each(operator.lt),
    ">": _each(operator.gt),
    "<=": _each(operator.le),
    ">=": _each(operator.ge),
    "in": lambda values: len(values) > 1 and values[0] in values[1:],
    "not": lambda values: [not value for value in values],
    "or": any,
    "and": all,
}


@dataclass(frozen=True, slots=True)
class Query:
    """Query; None: all hosts pass."""

    term: Call | None

    def passes(self, look: Look) -> bool:
        """Return whether one host passes."""
        return bool(self.where(lambda path: [look(path)], 1)[0])

    def where(self, column: Callable[[Path], Sequence[object]], length: int) -> Mask:
        """Return which of `length` hosts pass; `column` returns all hosts' values at a path and is called once per
        path.
        """
        if self.term is None:
            return np.ones(length, dtype=np.bool_)
        results = _values(self.term, cache(column), length)
        verdicts = (any(result) if isinstance(result, list) else bool(result) for result in results)
        return np.fromiter(verdicts, np.bool_, length)


def parse(query: object) -> Query:
    """Parse a query from JSON text or lists; an empty query passes all hosts.

    Raise BadRequest with the part that is invalid.
    """
    tree = _read(query) if isinstance(query, str) else query
    if tree in (None, "", [], {}):
        return Query(None)
    if not isinstance(tree, list):
        raise BadRequest(f'A query is a list like [">=", "$free_ram_mb", 1024], not {_shown(tree)}')
    term = _call(tree, 1)
    if sum(1 for _ in _terms(term)) > MAX_TERMS:
        raise BadRequest(f"The query has more than {MAX_TERMS} terms.")
    return Query(term)


def _read(text: str) -> object:
    if not text.strip():
        return None
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise BadRequest(f"The query is not JSON: {text[:200]}") from None


def _refuse(word: str) -> None:
    raise ValueError(word)


def _call(tree: Sequence[object], depth: int) -> Call:
    op, *arguments = tree
    if not isinstance(op, str) or op not in OPERATORS:
        raise BadRequest(f"The query has the unknown operator {_shown(op)}; known are {' '.join(OPERATORS)}")
    if depth > MAX_DEPTH:
        raise BadRequest(f"The query is nested deeper than {MAX_DEPTH}.")
    return Call(op, tuple(_term(argument, depth + 1) for argument in arguments))


def _term(tree: object, depth: int) -> Term:
    if isinstance(tree, list):
        return _call(tree, depth) if tree else Literal(True)
    if isinstance(tree, str) and tree.startswith("$"):
        return Variable(tuple(tree[1:].split(".")))
    return Literal(None if tree == "" else tree)


def _terms(term: Term) -> Iterator[Term]:
    yield term
    for argument in term.arguments if isinstance(term, Call) else ():
        yield from _terms(argument)


def _values(term: Term, column: Callable[[Path], Sequence[object]], length: int) -> Iterable[object]:
    """Return the value of a term for each host."""
    if isinstance(term, Literal):
        return repeat(term.value, length)
    if isinstance(term, Variable):
        return column(term.path)
    operate, arguments = OPERATORS[term.op], [_values(argument, column, length) for argument in term.arguments]
    if not arguments:
        return repeat(operate([]), length)
    return [operate([value for value in values if value is not None]) for values in zip(*arguments, strict=True)]


def _shown(value: object) -> str:
    return json.dumps(value, default=str)[:200]
