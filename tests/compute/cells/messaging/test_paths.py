"""Paths of cells."""

import pytest

from climate.compute.cells.messaging import paths
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


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("australia!queensland!gold_coast@host_5", ("australia!queensland!gold_coast", "host_5")),
        ("host_5", (None, "host_5")),
        ("a!b@c@d", ("a!b@c", "d")),
    ],
)
def test_ce_25_a_foreign_name_is_split_at_its_last_at(name: str, parts: tuple[str | None, str]) -> None:
    assert paths.split_item(name) == parts
    if parts[0] is not None:
        assert paths.with_item(parts[0], parts[1]) == name
