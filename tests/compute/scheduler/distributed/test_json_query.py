"""Queries in JSON: what they mean, and that nonsense is refused before anything is scheduled."""

import json
from typing import Any

import pytest

from climate.compute.errors import BadRequest
from climate.compute.scheduler.distributed.json_query import parse


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        (["=", 1, 1], True),
        (["=", 1, 2], False),
        (["<", 1, 2], True),
        (["<", 1, 1], False),
        ([">", 2, 1], True),
        ([">", 2, 2], False),
        (["<=", 1, 1], True),
        (["<=", 2, 1], False),
        ([">=", 2, 2], True),
        ([">=", 2, 3], False),
        (["in", 1, 1, 2, 3], True),
        (["in", 4, 1, 2, 3], False),
        (["not", True], False),
        (["not", False], True),
        (["or", True, False], True),
        (["or", False, False], False),
        (["and", True, True], True),
        (["and", True, False], False),
        (["and", ["or", True, False], [">", 2, 1], True], True),
        (["not", True, True, True], False),
        (["not", True, False, True, False], True),
        ([">", 1], False),
        (["in", 1], False),
        (["=", "$foo", 2, 2], True),
        (["=", "", 2, 2], True),
        (["=", "$x.zero", 0], True),
        (["=", "$x.zero.below", 0, 1], False),
        (["<", "a", 2], False),
        (["<", 1, 3, 2, 1], False),
        (["and", ["not", True, False]], True),
        (["or", ["not", True, False]], True),
        (["and", []], True),
        (["and"], True),
        (["or"], False),
        (["not"], False),
        ([], True),
        ({}, True),
    ],
)
def test_what_a_query_means(query: Any, passes: bool) -> None:
    has = {("x", "zero"): 0}
    assert parse(query).passes(has.get) is passes
    assert parse(json.dumps(query)).passes(has.get) is passes


@pytest.mark.parametrize("nothing", [None, "", "  ", "[]", "null"])
def test_no_query_lets_all_pass(nothing: str | None) -> None:
    assert parse(nothing).where(lambda path: [], 2).tolist() == [True, True]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ('["!=", 1, 2]', r'unknown operator "!="; known are = <'),
        ('["unknown command"]', "unknown operator"),
        ('["and", ["~", 1]]', "unknown operator"),
        ("[[1]]", "unknown operator"),
        ('{"a": 1}', "is a list like"),
        ("7", "is a list like"),
        ('["=", NaN, 1]', "not JSON"),
        ("[", "not JSON"),
        ("[" * 100000, "not JSON"),
        (json.dumps(["and", *[["=", 1, 1]] * 34]), "more than 100 terms"),
        ('["and",' * 17 + '["=",1,1]' + "]" * 17, "nested deeper than 16"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_the_reason(query: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        parse(query)


def test_each_host_has_its_own_answer() -> None:
    columns = {("a", "b"): [1, 2, None, 1], ("c",): ["x", "y", "x", "y"]}
    query = parse(["and", ["<", "$a.b", 2], ["=", "$c", "x"]])
    assert query.where(columns.__getitem__, 4).tolist() == [True, False, False, False]
