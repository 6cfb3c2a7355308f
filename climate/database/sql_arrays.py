"""Conditions whose values are sent as one array, so that a statement is prepared once for any number of values."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, any_, bindparam, literal
from sqlalchemy.dialects.postgresql import ARRAY


def in_array(column: ColumnElement[object], values: Iterable[object]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values."""
    return column == any_(literal(list(values), ARRAY(column.type)))


def in_parameter(column: ColumnElement[object], name: str) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values in the list that is the parameter `name`."""
    return column == any_(bindparam(name, type_=ARRAY(column.type)))
