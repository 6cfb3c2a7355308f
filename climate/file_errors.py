"""Errors of files that an operator wrote, each told in one sentence."""

import yaml

UNREADABLE = (OSError, ValueError, RecursionError, yaml.YAMLError)
"""Whatever reading a file as text, YAML or JSON may raise; a date that there is not is a ValueError."""


def told(error: Exception) -> str:
    """Why a file cannot be read, in one line: the place in the file where there is one, never what else is in it."""
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
