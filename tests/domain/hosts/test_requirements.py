"""What is understood of requirements, and which hosts meet them."""

import json
from typing import Any

import pytest

from climate.domain.errors import InvalidRequirements
from climate.domain.hosts import requirements
from climate.domain.hosts.requirements import ANYTHING, MAX_DEPTH, MAX_TERMS, SHORT, AllOf, Among, AnyOf, Compare

HOST: dict[str, object] = {"vcpus": 8, "gpu": "2", "model": "x1", "note": None, "10": "ten", "reservable": True}


@pytest.mark.parametrize("nothing", [None, "", "  ", '""', "[]", []])
def test_nothing_asks_for_nothing(nothing: object) -> None:
    assert requirements.parse(nothing) == ANYTHING
    assert requirements.matches(ANYTHING, {})


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('[">=", "$vcpus", "4"]', Compare(">=", "vcpus", "4")),
        ('["=", "$vcpus", 4]', Compare("==", "vcpus", 4.0)),
        ('["==", "$reservable", true]', Compare("==", "reservable", "True")),
        ('["!=", "$note", null]', Compare("!=", "note", None)),
        ('["in", "$gpu", ["1", 2]]', Among("gpu", ("1", 2.0))),
        ('["in", "$gpu", "1", "2"]', Among("gpu", ("1", "2"))),
        ('["AND", ["<", "$a", "1"]]', AllOf((Compare("<", "a", "1"),))),
        (
            '["or", ["<", "$a", "1"], ["and", [">", "$b", "2"]]]',
            AnyOf((Compare("<", "a", "1"), AllOf((Compare(">", "b", "2"),)))),
        ),
    ],
)
def test_understood(text: str, tree: object) -> None:
    assert requirements.parse(text) == tree == requirements.parse(json.loads(text))


NESTED: Any = ["==", "$a", "1"]
for _ in range(MAX_DEPTH):
    NESTED = ["and", NESTED]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[][",
        "5",
        '["and"]',
        '["like", "$a", "b"]',
        '["==", "a", "b"]',
        '["==", "$", "b"]',
        '["==", "$a"]',
        '["==", "$a", "b", "c"]',
        '["==", "$a", ""]',
        '["==", "$a", {}]',
        '[">", "$a", null]',
        '["in", "$a", []]',
        '["==", "$a", "\\u0000"]',
        '["==", "$a", "\\ud800"]',
        '["==", "$a", NaN]',
        '["==", "$a", Infinity]',
        '["==", "$a", 1' + "0" * 400 + "]",
        '["==", "$a", 1' + "0" * 5000 + "]",
        "[" * 100_000,
        [["==", "$a", "1"]],
        NESTED,
        ["and", *[["==", "$a", "1"]] * (MAX_TERMS + 1)],
        ["in", "$a", ["1"] * (MAX_TERMS + 1)],
    ],
    ids=lambda text: str(text)[:30],
)
def test_not_understood(text: object) -> None:
    with pytest.raises(InvalidRequirements, match="Malformed requirements"):
        requirements.parse(text)


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ([">=", "$vcpus", "8"], True),
        ([">", "$vcpus", "8"], False),
        ([">", "$vcpus", "10"], False),
        (["<", "$gpu", "10"], True),
        (["==", "$gpu", " 2.0 "], True),
        (["==", "$gpu", "\u0662"], False),
        (["!=", "$model", "x2"], True),
        (["<", "$model", "x2"], True),
        ([">", "$model", 1], False),
        (["<", "$model", 1], False),
        (["!=", "$model", 1], True),
        (["!=", "$missing", "1"], False),
        (["==", "$missing", None], False),
        (["==", "$note", None], True),
        (["!=", "$note", "x"], False),
        (["in", "$model", ["x0", "x1"]], True),
        (["==", "$10", "ten"], True),
        (["==", "$reservable", True], True),
        (["or", ["==", "$vcpus", 1], ["==", "$model", "x1"]], True),
        (["and", ["==", "$vcpus", 1], ["==", "$model", "x1"]], False),
    ],
)
def test_met_by_a_host(requirement: list[object], met: bool) -> None:
    assert requirements.matches(requirements.parse(requirement), HOST) is met


def test_the_same_short_text_is_understood_once() -> None:
    text = json.dumps(["==", "$model", "x1"])
    assert requirements.parse(text) is requirements.parse(text)
    long = json.dumps(["==", "$model", "x" * SHORT])
    assert requirements.parse(long) == requirements.parse(long) == Compare("==", "model", "x" * SHORT)
    assert requirements.parse(long) is not requirements.parse(long)


def test_keys() -> None:
    tree = requirements.parse('["and", ["==", "$a", "1"], ["or", ["in", "$b", "1"], ["<", "$a", "2"]]]')
    assert requirements.keys(tree) == {"a", "b"}
