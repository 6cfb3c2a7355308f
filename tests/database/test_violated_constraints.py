"""A violated constraint becomes the error of whoever wrote, by its name."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from climate.database.violated_constraints import translated


class _Taken(Exception):
    """The caller's own error."""


def _twice(engine: Engine, refusals: dict[str, Exception], otherwise: Exception | None = None) -> None:
    with engine.begin() as conn, translated(refusals, otherwise):
        conn.execute(text("CREATE TEMPORARY TABLE names (name text CONSTRAINT one_name PRIMARY KEY) ON COMMIT DROP"))
        conn.execute(text("INSERT INTO names VALUES ('a'), ('a')"))


def test_the_named_constraint_has_its_own_error(engine: Engine) -> None:
    with pytest.raises(_Taken, match="the name a") as caught:
        _twice(engine, {"one_name": _Taken("the name a"), "another": _Taken("another")})
    assert isinstance(caught.value.__cause__, IntegrityError)


def test_any_other_is_left_or_has_the_error_for_all(engine: Engine) -> None:
    with pytest.raises(IntegrityError):
        _twice(engine, {"another": _Taken()})
    with pytest.raises(_Taken, match="all"):
        _twice(engine, {"another": _Taken()}, _Taken("all"))


def test_what_is_not_refused_passes(engine: Engine) -> None:
    with engine.begin() as conn, translated({}, _Taken()):
        assert conn.scalar(text("SELECT 1")) == 1
