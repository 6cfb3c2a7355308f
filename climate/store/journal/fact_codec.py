"""Facts to JSON and back, guided by their annotations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from climate.domain import audit_trail, facts, operator_facts
from climate.domain.hosts import maintenance_facts
from climate.domain.planning import series

Part = TypeVar("Part")

AnyFact = (
    facts.Fact
    | facts.HostFact
    | operator_facts.OperatorFact
    | maintenance_facts.WindowFact
    | series.SeriesFact
    | audit_trail.ObjectChanged
)

KINDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(AnyFact)}


_PLAIN = frozenset((str, int, bool, NoneType))
"""Types of most values, which need no conversion."""


def encode(value: object) -> Any:
    """Return the value as JSON: facts by the names of their fields, ids and times as text."""
    kind: type = type(value)
    return value if kind in _PLAIN else _writer(kind)(value)


@cache
def _writer(kind: type) -> Callable[[Any], object]:
    """Return the encoder of a type, cached per type."""
    if issubclass(kind, UUID):
        return str
    if issubclass(kind, datetime):
        return datetime.isoformat
    if issubclass(kind, tuple | list):
        return lambda value: [encode(item) for item in value]
    if issubclass(kind, Mapping):
        return lambda value: {key: encode(item) for key, item in value.items()}
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        return lambda value: {name: encode(getattr(value, name)) for name in names}
    return lambda value: value


def decode(kind: str, body: Mapping[str, Any]) -> "AnyFact":
    """Return the fact of that kind; fields missing in the body take their defaults."""
    if kind == facts.HostMoved.__name__ and "cause" not in body:
        body = {**body, "cause": _cause_in_words(body["pool"], body["reason"])}
    return _reader(KINDS[kind])(body)  # type: ignore[no-any-return]


def _cause_in_words(pool: str, reason: str) -> facts.PoolCause:
    """Return the cause that releases before PoolCause kept in the text of the reason."""
    if pool == "failed" and reason == "declared well":
        return facts.PoolCause.DECLARED_WELL
    if pool == "failed" and reason.startswith("not cleaned: "):
        return facts.PoolCause.NOT_CLEANED
    if pool == "maintenance" and reason.startswith("worked on: "):
        return facts.PoolCause.WINDOW
    return facts.PoolCause.OTHER


def decode_all(kind: type[Part], bodies: Sequence[object]) -> tuple[Part, ...]:
    """Return parts of a fact that a row repeats, as `encode` wrote them."""
    read: Callable[[object], Part] = _dataclass_reader(kind)
    return tuple(map(read, bodies))


@cache
def _reader(hint: object) -> Callable[[Any], Any]:
    if hint is UUID:
        return UUID
    if hint is datetime:
        return datetime.fromisoformat
    if is_dataclass(hint):
        return _dataclass_reader(hint)
    if get_origin(hint) is tuple:
        return _tuple_reader(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        inner = _reader(next(arg for arg in get_args(hint) if arg is not NoneType))
        return lambda value: None if value is None else inner(value)
    return lambda value: value


def _tuple_reader(hint: object) -> Callable[[Any], object]:
    read = _reader(hint)
    return lambda values: tuple(read(value) for value in values)


def _dataclass_reader(hint: Any) -> Callable[[Any], Any]:
    readers = {name: _reader(inner) for name, inner in get_type_hints(hint).items()}
    return lambda body: hint(**{name: readers[name](value) for name, value in body.items() if name in readers})
