"""Paths of cells."""

import pytest

from climate.compute.cells import paths
from climate.compute.errors import BadRequest


def test_reverse_gives_the_way_back() -> None:
    """CE-1."""
    assert paths.reverse("a!b!c!d") == "d!c!b!a"


@pytest.mark.parametrize(
    ("path", "neighbour_only", "target"),
    [
        ("cell1", False, "cell1"),
        ("cell1!cell2", False, "cell2!cell1"),
        ("cell1!cell2!cell3", False, "cell3!cell2!cell1"),
        ("cell1!cell2!cell3", True, "cell3!cell2"),
    ],
)
def test_response_target(path: str, neighbour_only: bool, target: str) -> None:
    """CE-1."""
    assert paths.response_target(path, neighbour_only=neighbour_only) == target


@pytest.mark.parametrize("name", ["", "moo!cow", "moo.cow", "moo@cow", "a b", "é", "x" * 65, None, 1, ["a"], "a\n"])
def test_check_name_refuses(name: object) -> None:
    with pytest.raises(BadRequest, match="1 to 64 letters"):
        paths.check_name(name)


def test_check_name_returns_the_name() -> None:
    assert paths.check_name("child-cell_1") == "child-cell_1"


@pytest.mark.parametrize("path", ["", "a!", "!a", "a!!b", "a!b.c", 3, None])
def test_is_path_refuses(path: object) -> None:
    assert not paths.is_path(path)
