"""Conditions whose values are sent as one array, so that a statement is prepared once for any number of values."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, any_, bindparam, case, func, literal
from sqlalchemy.dialects.postgresql import ARRAY, JSONB


def in_array(column: ColumnElement[object], values: Iterable[object]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values."""
    return column == any_(literal(list(values), ARRAY(column.type)))


def in_parameter(column: ColumnElement[object], name: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values in the list that is the parameter `name`."""
    return column == any_(bindparam(name, type_=ARRAY(column.type)))


def json_array(column: ColumnElement[object]) -> ColumnElement[object]:
    """Return a JSON column, or an empty array for a row that has none: a broken row fails no query for others."""
    return case((func.jsonb_typeof(column) == "array", column), else_=literal([], JSONB))
