"""Session of one command: environment, settings, cloud client and output."""

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from climate.cli.control_characters import escaped_lines
from climate.cli.errors import USAGE, Failure

if TYPE_CHECKING:
    from climate.cli.connection.client import Client
    from climate.cli.tables import Look
    from climate.settings import Settings

RED, PLAIN = "\x1b[31m", "\x1b[0m"


@dataclass
class Session:
    """Session that the root command creates for all others."""

    environ: Mapping[str, str]
    cloud_name: str | None = None
    form: str = "table"
    columns: Sequence[str] = ()
    sort: Sequence[str] = ()
    long: bool = False
    iso: bool = False
    utc: bool = False
    opened: "list[Client]" = field(default_factory=list)

    @cached_property
    def settings(self) -> "Settings":
        """Return the settings; Failure names the first that is invalid."""
        from climate.settings import SettingError, Settings

        known = {f"CLIMATE_{name.upper()}" for name in Settings.__dataclass_fields__}
        for name in sorted(name for name in self.environ if name.startswith("CLIMATE_") and name not in known):
            if near := difflib.get_close_matches(name, known, 1, 0.85):
                self.say(f"{name} is no setting and has no effect; did you mean {near[0]}?")
        try:
            return Settings.from_env(self.environ)
        except SettingError as wrong:
            raise Failure(str(wrong), USAGE, "correct or unset that variable") from None

    @cached_property
    def client(self) -> "Client":
        """Return the client of the chosen cloud; it has sent nothing yet."""
        from climate.cli.connection.client import Client
        from climate.cli.connection.clouds import find
        from climate.cli.connection.token_cache import TokenCache, folder_of

        cloud = find(self.cloud_name, self.environ, self.settings.home)
        client = Client(
            cloud, cache=TokenCache(folder_of(self.environ)), warn=lambda text: self.say(f"warning: {text}")
        )
        self.opened.append(client)
        return client

    @property
    def interactive(self) -> bool:
        """Return whether stderr is a terminal."""
        return sys.stderr.isatty()

    @property
    def colourful(self) -> bool:
        """Return whether messages may have colours."""
        return self.interactive and self.has_colours

    @property
    def has_colours(self) -> bool:
        return not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"

    @cached_property
    def table_style(self) -> "Look":
        """Return the appearance of tables: the width of the terminal or of COLUMNS, and no limit in a pipe."""
        from climate.cli.tables import Look

        given = self.environ.get("COLUMNS", "")
        width = int(given) if given.isdecimal() and int(given) else None
        if width is None and sys.stdout.isatty():
            width = get_terminal_size().columns
        colour = sys.stdout.isatty() and self.has_colours
        return Look(width, colour, self.iso, self.utc, self._now())

    def _now(self) -> datetime:
        """Return the time of the server's clock, or of the local one if the server was not asked."""
        clock = self.opened[0].clock if self.opened else None
        return clock or datetime.now(UTC)

    def show_all(self, rows: Iterable[Mapping[str, object]], default: Sequence[str]) -> None:
        """Print a list; `default` are the columns of the table and CSV forms."""
        from climate.cli import output

        rows = list(rows)
        columns = self.columns or (() if self.form in ("json", "yaml") else _present(default, rows))
        whole = bool(self.columns) or self.long or self.table_style.width is None
        click.echo(output.records(rows, self.form, columns, self.sort, self.table_style, whole), nl=False)
        if self.form == "table" and not rows:
            self.say(empty(click.get_current_context().command_path))
        elif self.form == "table" and not whole and sys.stdout.isatty():
            self._mention(output.without_room(rows, columns, self.table_style))

    def _mention(self, names: Sequence[str]) -> None:
        if names:
            self.say(f"no room for {', '.join(names)}: --long, or -c {names[0]}")

    def show(self, row: Mapping[str, object]) -> None:
        """Print one record."""
        from climate.cli import output

        click.echo(output.record(row, self.form, self.columns, self.table_style), nl=False)

    def say(self, text: str) -> None:
        """Print a message to stderr; names in it may be of others."""
        click.echo(escaped_lines(text), err=True)

    def say_error(self, text: str) -> None:
        """Print why a command failed to stderr, with its first word in colour."""
        word = f"{RED}error:{PLAIN}" if self.colourful and text.startswith("error:") else ""
        click.echo(word + escaped_lines(text.removeprefix("error:") if word else text), err=True)

    def close(self) -> None:
        """Close all connections."""
        for client in self.opened:
            client.close()


NEXT = {
    "lease list": "no leases: `climate lease create NAME --for 2h --hosts 1` reserves a host",
    "server list": "no servers: `climate boot NAME --flavor FLAVOR --image IMAGE` starts one; "
    "`climate flavor list` and `climate image list` show the choice",
    "host list": "no hosts can be reserved: `climate node list` shows those of the cloud, "
    "`climate host create NODE` adds one",
    "notice list": "no notifications",
    "series list": "no series: `climate lease create NAME --repeat RULE` creates one",
    "calendar list": "no calendar feeds: `climate calendar create` creates one",
    "node list": "the cloud has no nodes: a compute service with a nodes file reports them (docs/cloud.md)",
    "volume list": "no volumes: a lease of storage creates one, "
    "`climate lease create NAME --for 2h --storage 10 --storage-class CLASS`",
    "floating list": "no floating IPs: `climate floating create` allocates one",
    "floating reservable list": "no floating IPs can be reserved: `climate floating reservable create NETWORK ADDRESS`",
    "floating pool list": "no pools: `climate floating pool create NAME RANGE` creates one",
    "storage list": "no storage pools: `climate storage create` creates one",
    "network list": "no networks: `climate network create LABEL RANGE` creates one",
    "image list": "no images: an image is uploaded with `openstack image create`",
    "flavor list": "no flavors: a flavor is created with `openstack flavor create`",
    "maintenance list": "no maintenance is planned: `climate maintenance create HOST` plans a window",
    "zone list": "no child zones: `climate zone add URL --username NAME` adds one",
    "cell list": "no neighbours: `climate cell add NAME --child` adds one",
    "event list": "no events in this status",
}
"""Command -> text for its list when it is empty, with what creates the first row."""


def empty(path: str) -> str:
    """Return the text for an empty list of a command."""
    return NEXT.get(path.removeprefix("climate "), "nothing to list")


def _present(default: Sequence[str], rows: Sequence[Mapping[str, object]]) -> Sequence[str]:
    """Return the columns of `default` that the rows have; all of them if there are no rows."""
    known = [name for name in default if any(name in row for row in rows)]
    return known or default


def current() -> Session:
    """Return the session of the running command."""
    session = click.get_current_context().find_object(Session)
    if session is None:
        raise AssertionError("the root command must run first")
    return session
