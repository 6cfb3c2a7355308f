"""Completion of names by the shell: leases, hosts, servers, flavors, images, pools, networks and nodes.

A request that fails completes nothing, because a shell has no place for an error.
"""

import re
from collections.abc import Mapping
from itertools import islice

import click
from click.shell_completion import CompletionItem

from climate.cli.connection.session import Session

MOST = 500
"""Names that are offered at most."""
ONE_WORD = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\"'`$\\\u202a-\u202e\u2066-\u2069]+")
"""Names that a shell takes as one word; others are not offered."""

LISTS: Mapping[str, tuple[str, str, str, str]] = {
    "lease": ("reservation", "/leases", "leases", "name"),
    "series": ("reservation", "/series", "series", "name"),
    "host": ("reservation", "/os-hosts", "hosts", "hypervisor_hostname"),
    "pool": ("reservation", "/pools", "pools", "name"),
    "server": ("compute", "/servers", "servers", "name"),
    "flavor": ("compute", "/flavors", "flavors", "name"),
    "node": ("compute", "/os-hypervisors", "hypervisors", "hypervisor_hostname"),
    "image": ("image", "/v2/images", "images", "name"),
    "network": ("network", "/v2.0/networks", "networks", "name"),
}
"""Noun -> service, path, key of the list, and key of the name."""

OPTIONS = frozenset({"lease", "flavor", "image", "network"})
"""Nouns that options take, too."""


class NameType(click.ParamType[str]):
    """A click parameter for the name or id of a thing, whose names the shell completes."""

    name = "text"

    def __init__(self, noun: str) -> None:
        self.noun = noun

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with a text."""
        session = ctx.find_object(Session)
        if session is None:
            return []
        session.cloud_name = ctx.find_root().params.get("cloud")
        try:
            names = sorted(_names(session, self.noun))
        except Exception:  # noqa: BLE001  # the line that is typed must not be disturbed
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _names(session: Session, noun: str) -> set[str]:
    service, path, key, name = LISTS[noun]
    session.client.warn = lambda text: None
    rows = islice(session.client.pages(service, path, key), MOST)
    return {text for row in rows if ONE_WORD.fullmatch(text := str(row.get(name) or ""))}


def complete_names(command: click.Command) -> None:
    """Let the shell complete the parameters of a command, and of all below it, that are called after things."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete_names(below)
    for parameter in command.params:
        called = parameter.name or ""
        noun = called if called in LISTS else called.removesuffix("s")
        takes = isinstance(parameter, click.Argument) or noun in OPTIONS
        if noun in LISTS and takes and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = NameType(noun)
