"""Requirements of hosts: `["and", [">=", "$vcpus", "4"], [">", "$gpu_count", "1"]]`.

Requests are parsed once, when they arrive, into a small tree. The language is Blazar's plus `or`, `in`,
numbers, and nested terms. A host without the named capability never matches, whatever the operator. Two
numbers are compared as numbers.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from climate.domain.errors import InvalidRequirements

MAX_DEPTH = 8
MAX_TERMS = 64
SHORT = 1000
"""Longest text, in characters, whose requirement is kept."""
LARGEST = 10**18
"""Numbers lie between this and its negative, as text and as JSON."""

Value = str | float | None
NUMBER = re.compile(r"[ \t\n\r\f\v]*[+-]?([0-9]{1,18}(\.[0-9]{1,18})?|\.[0-9]{1,18})[ \t\n\r\f\v]*")
"""Pattern of numbers; the store's SQL uses the same."""

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that PostgreSQL cannot store."""


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of a property of the host with a value: == != >= <= > <."""

    op: str
    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class Among:
    """Term that holds if the property has one of these values."""

    key: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    terms: "tuple[Requirement, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    terms: "tuple[Requirement, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation. Only flavors create it; the language has no word for it."""

    term: "Requirement"


Requirement = Compare | Among | AllOf | AnyOf | Not
ANYTHING = AllOf(())

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
GROUPS: Mapping[str, Callable[[tuple[Requirement, ...]], Requirement]] = {"and": AllOf, "or": AnyOf}


def parse(text: object) -> Requirement:
    """Parse a requirement from JSON text, or from the equivalent lists; "" requires nothing.

    Raises InvalidRequirements, with Blazar's messages.
    """
    if text is None:
        return ANYTHING
    if isinstance(text, str) and len(text) <= SHORT:
        return _read_short(text)
    return _read(text)


def _read(text: object) -> Requirement:
    if isinstance(text, str) and not text.strip():
        return ANYTHING
    try:
        tree = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        raise malformed(text) from None
    if tree in ("", []):
        return ANYTHING
    requirement = _term(tree, 1, tree)
    if sum(1 for _ in terms(requirement)) > MAX_TERMS:
        raise InvalidRequirements(f"Malformed requirements: more than {MAX_TERMS} terms")
    return requirement


_read_short = lru_cache(maxsize=500)(_read)
"""Each lease states its requirements anew, and most leases state the same ones."""


def malformed(text: object) -> InvalidRequirements:
    shown = text if isinstance(text, str) else json.dumps(text, default=str)
    return InvalidRequirements(
        f"Malformed requirements {shown[:200]}: wanted is a list like "
        '[">=", "$vcpus", "4"], ["in", "$gpu", ["a", "b"]] or ["and", term, term]'
    )


def _term(tree: object, depth: int, whole: object) -> Requirement:
    if depth > MAX_DEPTH:
        raise InvalidRequirements(f"Malformed requirements: nested deeper than {MAX_DEPTH}")
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        raise malformed(whole)
    word, rest = tree[0].strip().lower(), tree[1:]
    if word in GROUPS and rest:
        return GROUPS[word](tuple(_term(term, depth + 1, whole) for term in rest))
    word = "==" if word == "=" else word
    if word in COMPARISONS and len(rest) == 2:
        return _compare(word, _key(rest[0], whole), _value(rest[1], whole), whole)
    if word == "in" and len(rest) >= 2:
        return _among(rest, whole)
    raise malformed(whole)


def _among(rest: Sequence[object], whole: object) -> Among:
    """Return the requirement of `in`: a key, and its values as one list or one by one."""
    values = rest[1] if len(rest) == 2 and isinstance(rest[1], list) else rest[1:]
    if not 0 < len(values) <= MAX_TERMS:
        raise malformed(whole)
    return Among(_key(rest[0], whole), tuple(_value(value, whole) for value in values))


def _compare(op: str, key: str, value: Value, whole: object) -> Compare:
    if value is None and op not in ("==", "!="):
        raise malformed(whole)
    return Compare(op, key, value)


def _key(word: object, whole: object) -> str:
    if isinstance(word, str) and word.startswith("$") and len(word) > 1:
        return word[1:]
    raise malformed(whole)


def _value(value: object, whole: object) -> Value:
    match value:
        case bool():
            return str(value)
        case int() | float() if -LARGEST <= value <= LARGEST:
            return float(value)
        case None:
            return None
        case str() if value.strip() and not UNSTORABLE.search(value):
            return value
    raise malformed(whole)


def terms(requirement: Requirement) -> Iterator[Compare | Among]:
    """Yield every comparison in the tree."""
    match requirement:
        case AllOf(inner) | AnyOf(inner):
            for term in inner:
                yield from terms(term)
        case Not(term):
            yield from terms(term)
        case Compare() | Among():
            yield requirement


def keys(requirement: Requirement) -> frozenset[str]:
    return frozenset(term.key for term in terms(requirement))


def number(value: object) -> float | None:
    """Return the number that `value` stands for, or None."""
    match value:
        case bool():
            return None
        case int() | float():
            return float(value)
        case str() if NUMBER.fullmatch(value):
            return float(value)
    return None


def matches(requirement: Requirement, host: Mapping[str, object]) -> bool:
    """Return whether a host with these properties matches. The store has the same rule in SQL."""
    match requirement:
        case AllOf(inner):
            return all(matches(term, host) for term in inner)
        case AnyOf(inner):
            return any(matches(term, host) for term in inner)
        case Not(term):
            return not matches(term, host)
        case Among(key, values):
            return any(_holds("==", host.get(key), key in host, value) for value in values)
        case Compare(op, key, value):
            return _holds(op, host.get(key), key in host, value)


def _holds(op: str, own: object, known: bool, value: Value) -> bool:
    if not known:
        return False
    if value is None or own is None:
        return value is None and (own is None) is (op == "==")
    mine, wanted = number(own), number(value)
    if mine is not None and wanted is not None:
        return COMPARISONS[op](mine, wanted)
    if wanted is not None and op not in ("==", "!="):
        return False
    return COMPARISONS[op](_text(own), _text(value))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
