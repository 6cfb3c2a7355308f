"""Control characters in texts that others wrote: they are shown, and never reach a terminal."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters that could change the terminal or the direction of the text."""
_NOT_IN_LINES = re.compile(r"(?![\n\t])" + _CONTROL.pattern)


def escaped(text: str) -> str:
    """Return a text of one line with each control character as Python spells it."""
    return _CONTROL.sub(_spelled, text)


def escaped_lines(text: str) -> str:
    """Return a text of several lines with each other control character as Python spells it."""
    return _NOT_IN_LINES.sub(_spelled, text)


def escaped_json(text: str) -> str:
    """Return a JSON text with each control character in its strings as JSON spells it, so that it means the same."""
    return _NOT_IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def has_control(text: str) -> bool:
    """Return whether a text of several lines has a control character."""
    return _NOT_IN_LINES.search(text) is not None


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
