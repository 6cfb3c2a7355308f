"""Options that share a lease with projects and users, and the part of a request built from them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Lease, Sharing

F = TypeVar("F", bound=Callable[..., object])


class SharingOptions(TypedDict):
    """Options of sharing for a new lease."""

    share_project: tuple[str, ...]
    viewer: tuple[str, ...]
    extender: tuple[str, ...]


class SharingChangeOptions(SharingOptions):
    """Options of sharing for a change."""

    unshare: tuple[str, ...]


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


def _named(options: SharingOptions) -> dict[str, tuple[str, ...]]:
    """Return the ids of the options by the keys of a request."""
    return {"projects": options["share_project"], "viewers": options["viewer"], "extenders": options["extender"]}


def requested(options: SharingOptions, repeat: str | None) -> dict[str, object]:
    """Return the part of a request that shares a new lease; nothing without options."""
    named = {key: list(dict.fromkeys(ids)) for key, ids in _named(options).items() if ids}
    if named and repeat:
        raise click.UsageError("--repeat excludes the options of sharing: share each lease with `climate lease set`")
    return {"sharing": named} if named else {}


def is_changed(options: SharingChangeOptions) -> bool:
    """Return whether options change the sharing of a lease."""
    return any((*_named(options).values(), options["unshare"]))


def changed(present: "Lease", options: SharingChangeOptions) -> dict[str, list[str]]:
    """Return the sharing of a lease with what the options add, and without what they remove."""
    known = shared_with(present.get("sharing"))
    after = {key: [*dict.fromkeys((*known.get(key, ()), *ids))] for key, ids in _named(options).items()}
    unknown = set(options["unshare"]) - {one for ids in after.values() for one in ids}
    if unknown:
        raise click.UsageError(f"--unshare {min(unknown)}: the lease is not shared with it")
    return {key: [one for one in ids if one not in options["unshare"]] for key, ids in after.items()}


def shared_with(sharing: "Sharing | None") -> dict[str, list[str]]:
    """Return the ids with which a lease is shared, by the keys of the answer."""
    if not sharing:
        return {}
    return {
        "projects": sharing.get("projects", []),
        "viewers": sharing.get("viewers", []),
        "extenders": sharing.get("extenders", []),
    }


def sharing_lines(lease: "Lease") -> list[str]:
    """Return a line for each project and user with whom a lease is shared."""
    known = shared_with(lease.get("sharing"))
    words = {"projects": "project", "viewers": "viewer", "extenders": "extender"}
    return [f"{word} {one}" for key, word in words.items() for one in known.get(key, ())]
