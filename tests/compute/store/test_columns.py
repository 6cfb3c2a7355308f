"""Conditions and lists of columns."""

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, select, values
from sqlalchemy.dialects.postgresql import ARRAY, dialect

from climate.compute.store.columns import in_array, in_parameter, sql_of, uuid

table = Table("things", MetaData(), uuid("id", key=True), Column("name", Text), Column("sizes", ARRAY(Integer)))


def test_ids_are_text_in_a_list_of_columns() -> None:
    assert sql_of(table.c, "t") == "t.id::text, t.name, t.sizes"
    assert sql_of([table.c.name], "t") == "t.name"


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], []])
def test_a_condition_on_values_is_one_text_for_any_number_of_them(names: list[str]) -> None:
    one = select(table.c.name).where(in_array(table.c.name, ["a"])).compile(dialect=dialect())
    several = select(table.c.name).where(in_array(table.c.name, names)).compile(dialect=dialect())
    assert str(several) == str(one)
    assert [*several.params.values()] == [names]


def test_a_condition_on_a_parameter_accepts_a_list(engine: Engine) -> None:
    numbers = values(Column("n", Integer), name="numbers").data([(1,), (2,), (3,)]).alias()
    query = select(numbers.c.n).where(in_parameter(numbers.c.n, "wanted")).order_by(numbers.c.n)
    with engine.connect() as conn:
        assert conn.scalars(query, {"wanted": [3, 1]}).all() == [1, 3]
        assert conn.scalars(query, {"wanted": []}).all() == []
