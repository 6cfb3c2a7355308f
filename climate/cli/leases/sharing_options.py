"""Options that share a lease with projects and users, and the part of a request built from them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

KINDS = {"share_project": "projects", "viewer": "viewers", "extender": "extenders"}
"""Name of an option -> key of the request."""

NAMES = (
    click.option(
        "--share-project", multiple=True, metavar="ID", help="A project that may boot servers on it; repeatable."
    ),
    click.option("--viewer", multiple=True, metavar="ID", help="A user who may see it; repeatable."),
    click.option("--extender", multiple=True, metavar="ID", help="A user who may see and extend it; repeatable."),
)
ENDS = (
    click.option(
        "--unshare", multiple=True, metavar="ID", help="A project or user with whom it is shared no more; repeatable."
    ),
)


def sharing_options(*, new: bool) -> Callable[[F], F]:
    """Add the options of sharing to a command; a change has one more than a new lease."""

    def decorate(command: F) -> F:
        for option in reversed((*NAMES, *(() if new else ENDS))):
            command = option(command)
        return command

    return decorate


def requested(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the part of a request that shares a new lease; nothing without options."""
    named = {key: list(dict.fromkeys(given[option])) for option, key in KINDS.items() if given[option]}
    if named and given.get("repeat"):
        raise click.UsageError("--repeat excludes the options of sharing: share each lease with `climate lease set`")
    return {"sharing": named} if named else {}


def is_changed(given: Mapping[str, Any]) -> bool:
    """Return whether options change the sharing of a lease."""
    return any(given[option] for option in (*KINDS, "unshare"))


def changed(present: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the sharing of a lease with what the options add, and without what they remove."""
    known = present.get("sharing") or {}
    after = {key: [*dict.fromkeys((*known.get(key, ()), *given[option]))] for option, key in KINDS.items()}
    unknown = set(given["unshare"]) - {one for ids in after.values() for one in ids}
    if unknown:
        raise click.UsageError(f"--unshare {min(unknown)}: the lease is not shared with it")
    return {key: [one for one in ids if one not in given["unshare"]] for key, ids in after.items()}


def shown(lease: Mapping[str, Any]) -> list[str]:
    """Return a line for each project and user with whom a lease is shared."""
    known = lease.get("sharing") or {}
    words = {"projects": "project", "viewers": "viewer", "extenders": "extender"}
    return [f"{word} {one}" for key, word in words.items() for one in known.get(key, ())]
