"""Functions above the limit of complexity, and comments that lift it, are recognized."""

import ast

import pytest

from tests.complexity import EXEMPTION, MOST, complaints, complexity


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("def f(): return 1", 1),
        ("def f(a): return [x for x in a if x and x > 1]", 4),
        ("def f(a):\n    for x in a:\n        if x: return x\n    else: return 0", 4),
        ("def f(a):\n    try: a()\n    except OSError: pass\n    except ValueError: pass", 3),
        ("def f(a): return sorted(a, key=lambda x: 1 if x else 2)", 3),
        ("def f(a):\n    match a:\n        case 1: return 1\n        case _: return 2", 3),
    ],
)
def test_branches_are_counted_wherever_they_are(source: str, number: int) -> None:
    assert complexity(ast.parse(source)) == number


def test_a_complaint_names_the_line_and_the_function() -> None:
    source = "def f(a):\n    return 1\n\n\ndef g(a):\n    return " + " or ".join(["a"] * (MOST + 1)) + "\n"
    assert list(complaints(source)) == [f"5: g has the complexity {MOST + 1} of at most {MOST}"]
    assert list(complaints("\ndef f():  # noqa: C901\n    pass")) == [
        "2: this lifts the limits of functions: def f():  # noqa: C901"
    ]


@pytest.mark.parametrize(
    ("comment", "is_exemption"),
    [
        ("def f():  # noqa: C901", True),
        ("def f():  # noqa: S603, PLR0913", True),
        ("def f():  # noqa", True),
        ("# ruff: noqa", True),
        ("subprocess.run(argv)  # noqa: S603", False),
        ("match = one  # noqa: N802 - the name of the protocol", False),
    ],
)
def test_exemptions_are_recognized(comment: str, is_exemption: bool) -> None:
    assert bool(EXEMPTION.search(comment)) is is_exemption
