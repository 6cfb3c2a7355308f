"""Report of a child cell about itself and all cells below it, validated before it is stored or shown."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from climate.compute.cells.messaging import paths
from climate.compute.cells.state import capacities
from climate.compute.errors import BadRequest

DEEPEST = 100
"""Maximum levels of cells in a report."""

LONGEST_WORD = 1024
"""Maximum length of a capability or a name."""

STATES = ("up", "mute")


def read(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities, capacities, offers and children of a report. Raise BadRequest with the invalid one."""
    return {
        "capabilities": _capabilities(kwargs.get("capabilities")),
        "capacities": capacities.read(kwargs.get("capacities")),
        "offers": _lists(kwargs.get("offers", {}), "offers"),
        "children": _children(kwargs.get("children", [])),
    }


def time(text: object) -> datetime:
    """Return the time of a report, with its zone. Raise BadRequest."""
    try:
        result = datetime.fromisoformat(str(text))
    except ValueError:
        raise BadRequest(f"reported_at must be a time, got {str(text)[:40]!r}") from None
    return result if result.tzinfo is not None else result.replace(tzinfo=UTC)


def names(children: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of all cells in the children of a report."""
    return {name for child in children for name in ({child["name"]} | names(child["children"]))}


def _capabilities(given: object) -> dict[str, list[str]]:
    """Return capabilities; only printable text is accepted, because they are shown on terminals."""
    result = _lists(given, "capabilities")
    if not all(word.isprintable() for key, values in result.items() for word in (key, *values)):
        raise BadRequest("capabilities must be printable texts")
    return result


def _lists(given: object, name: str) -> dict[str, list[str]]:
    if not isinstance(given, dict) or not all(_is_word(key) and _are_words(values) for key, values in given.items()):
        raise BadRequest(f"{name} must be an object of lists of texts with at most {LONGEST_WORD} characters")
    return given


def _are_words(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_word, values))


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_WORD


def _children(given: object, level: int = 0) -> list[dict[str, object]]:
    if not isinstance(given, list) or level > DEEPEST:
        raise BadRequest(f"children must be a list of cells, at most {DEEPEST} levels deep")
    return [_child(one, level) for one in given]


def _child(given: object, level: int) -> dict[str, object]:
    if not isinstance(given, dict):
        raise BadRequest("children must be a list of cells")
    age = given.get("age")
    if age is not None and not capacities.is_number(age):
        raise BadRequest("the age of a cell must be a number of seconds, or null")
    if given.get("state") not in STATES:
        raise BadRequest(f"the state of a cell must be one of {', '.join(STATES)}")
    return {
        "name": paths.check_name(given.get("name")),
        "state": given["state"],
        "age": age,
        "capabilities": _capabilities(given.get("capabilities", {})),
        "capacities": capacities.read(given.get("capacities", {})),
        "children": _children(given.get("children", []), level + 1),
    }
