"""One-line texts for errors in files that an operator wrote."""

import yaml

UNREADABLE = (OSError, ValueError, RecursionError, yaml.YAMLError)
"""Errors that reading a file as text, YAML or JSON may raise; an invalid date is a ValueError."""


def reason_of(error: Exception) -> str:
    """Return in one line why a file cannot be read: the position in the file if known, never other content of it."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or 'this is no YAML'}"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return " ".join(str(error).split())[:200] or type(error).__name__
