"""Installed parts of schedulers by name, loaded from entry points."""

from collections.abc import Sequence
from typing import Any

from climate.compute.errors import ComputeError
from climate.entry_points import installed


def named(group: str, what: str, names: Sequence[str], refusal: type[ComputeError]) -> dict[str, Any]:
    """Return the parts of these names, without duplicates, in order.

    Raise `refusal` with all missing names and the installed ones, or with the reason why a part cannot be imported.
    """
    known_parts = {entry.name: entry for entry in installed(group)}
    missing = [name for name in names if name not in known_parts]
    if missing:
        known = ", ".join(sorted(known_parts))
        raise refusal(f"{what} {', '.join(missing)} could not be found; known are {known}")
    result = {}
    for name in dict.fromkeys(names):
        try:
            result[name] = known_parts[name].load()
        except Exception as reason:
            message = f"{type(reason).__name__}: {reason}"
            raise refusal(f"{what} {name} is installed, but it cannot be loaded: {message}") from reason
    return result
