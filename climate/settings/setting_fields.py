"""Fields of settings: default, description and limits, and how the text of a variable becomes a value."""

from dataclasses import Field, field
from pathlib import Path
from typing import Any


class SettingError(Exception):
    """Raised for an invalid value of a setting."""


FLAG = ("true", "false")


def setting(default: Any, says: str, least: float = 0, most: float = 10**9, words: tuple[str, ...] = ()) -> Any:
    """Return a field; numbers lie between `least` and `most`, texts are one of `words` if there are any."""
    words = FLAG if isinstance(default, bool) else words
    return field(default=default, metadata={"says": says, "least": least, "most": most, "words": words})


def secret(says: str) -> Any:
    """Return the field of a secret, which is hidden in the text form."""
    return field(default="", repr=False, metadata={"says": says, "least": 0, "most": 0, "words": ()})


def read(setting: "Field[Any]", text: str) -> Any:
    """Return the value of a setting; raise SettingError if the text is none."""
    name = f"CLIMATE_{setting.name.upper()}"
    kind: Any = type(setting.default)
    if issubclass(kind, Path):
        return Path(text)
    try:
        value = text if kind is bool else kind(text)
    except ValueError:
        raise SettingError(f"{name}={text!r} is not a number") from None
    bounds, words = setting.metadata, setting.metadata["words"]
    if kind not in (str, bool) and not bounds["least"] <= value <= bounds["most"]:
        raise SettingError(f"{name}={text!r} must lie between {bounds['least']} and {bounds['most']}")
    if words and value not in words:
        raise SettingError(f"{name}={text!r} must be one of {', '.join(words)}")
    return value == "true" if kind is bool else value
