"""Requirements as SQL over the rows of hosts, equivalent to `climate.domain.hosts.requirements.matches`."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    Integer,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
    true,
)

from climate.domain.errors import InvalidRequirements
from climate.domain.hosts.requirements import (
    COMPARISONS,
    NUMBER,
    AllOf,
    Among,
    AnyOf,
    Compare,
    Not,
    Requirement,
    Value,
    keys,
    number,
)
from climate.store.hosts.hosts import COLUMNS
from climate.store.tables.hosts import hosts

IS_NUMBER = rf"^{NUMBER.pattern}$"


def refuse_unknown(requirement: Requirement, extra: frozenset[str]) -> None:
    """Raise InvalidRequirements that names the keys that are neither columns of hosts nor known capabilities."""
    unknown = sorted(keys(requirement) - extra - frozenset(COLUMNS))
    if unknown:
        raise InvalidRequirements(f"Malformed requirements: no host has a property called {', '.join(unknown)}")


def condition(requirement: Requirement) -> ColumnElement[bool]:
    """Return a condition on `hosts`; values are always bound, never part of the text."""
    match requirement:
        case AllOf(terms):
            return and_(true(), *(condition(term) for term in terms))
        case AnyOf(terms):
            return or_(false(), *(condition(term) for term in terms))
        case Not(term):
            return not_(func.coalesce(condition(term), false()))
        case Among(key, values):
            return or_(false(), *(_holds("==", key, value) for value in values))
        case Compare(op, key, value):
            return _holds(op, key, value)


def _holds(op: str, key: str, value: Value) -> ColumnElement[bool]:
    if key not in COLUMNS:
        own = hosts.c.extra[key].astext
        return _text_holds(op, own, value) if value is not None else and_(hosts.c.extra.has_key(key), _null(op, own))
    column: ColumnElement[object] = hosts.c[key]
    if value is None:
        return _null(op, column)
    if isinstance(column.type, Integer | BigInteger):
        wanted = number(value)
        if wanted is None:
            raise InvalidRequirements(f"Malformed requirements: {key} is a number, {value!r} is not")
        return _compared(op, cast(column, Double), cast(literal(wanted), Double))
    if isinstance(column.type, Boolean):
        column = case((column, "True"), else_="False")
    return _text_holds(op, column, value)


def _null(op: str, own: ColumnElement[object]) -> ColumnElement[bool]:
    return own.is_(None) if op == "==" else own.is_not(None)


def _text_holds(op: str, own: ColumnElement[object], value: Value) -> ColumnElement[bool]:
    """Compare both sides as numbers if they are; a number is never more or less than other text."""
    wanted = number(value)
    as_text = _compared(op, func.coalesce(own).collate("C"), literal(_value_text(value)))
    if wanted is None:
        return and_(own.is_not(None), as_text)
    otherwise = as_text if op in ("==", "!=") else false()
    as_number = _compared(op, cast(own, Double), cast(literal(wanted), Double))
    return and_(own.is_not(None), case((own.regexp_match(literal(IS_NUMBER)), as_number), else_=otherwise))


def _value_text(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _compared(op: str, left: ColumnElement[Any], right: ColumnElement[Any]) -> ColumnElement[bool]:
    compared: ColumnElement[bool] = COMPARISONS[op](left, right)  # type: ignore[assignment]
    return compared
