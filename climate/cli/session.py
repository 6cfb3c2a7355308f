"""Session of one command: environment, settings, cloud client and output."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import click

from climate.cli import output
from climate.cli.client import Client
from climate.cli.clouds import find
from climate.cli.errors import USAGE, Failure
from climate.settings import SettingError, Settings


@dataclass
class Session:
    """Session that the root command creates for all others."""

    environ: Mapping[str, str]
    cloud_name: str | None = None
    form: str = "table"
    columns: Sequence[str] = ()
    sort: Sequence[str] = ()
    opened: list[Client] = field(default_factory=list)

    @cached_property
    def settings(self) -> Settings:
        """Return the settings; Failure names the first that is invalid."""
        try:
            return Settings.from_env(self.environ)
        except SettingError as wrong:
            raise Failure(str(wrong), USAGE, "correct or unset that variable") from None

    @cached_property
    def client(self) -> Client:
        """Return the client of the chosen cloud; it has sent nothing yet."""
        client = Client(find(self.cloud_name, self.environ, self.settings.home))
        self.opened.append(client)
        return client

    @property
    def interactive(self) -> bool:
        """Return whether stderr is a terminal."""
        return sys.stderr.isatty()

    @property
    def colourful(self) -> bool:
        return self.interactive and not self.environ.get("NO_COLOR")

    def show_all(self, rows: Iterable[Mapping[str, Any]], default: Sequence[str]) -> None:
        """Print a list; `default` are the columns of the table and CSV forms."""
        columns = self.columns or (() if self.form in ("json", "yaml") else _present(default, rows := list(rows)))
        click.echo(output.records(rows, self.form, columns, self.sort), nl=False)

    def show(self, row: Mapping[str, Any]) -> None:
        """Print one record."""
        click.echo(output.record(row, self.form, self.columns), nl=False)

    def say(self, text: str) -> None:
        """Print a message to stderr."""
        click.echo(text, err=True)

    def close(self) -> None:
        """Close all connections."""
        for client in self.opened:
            client.close()


def _present(default: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Return the columns of `default` that the rows have; all of them if there are no rows."""
    known = [name for name in default if any(name in row for row in rows)]
    return known or default


def current() -> Session:
    """Return the session of the running command."""
    session = click.get_current_context().find_object(Session)
    if session is None:
        raise AssertionError("the root command must run first")
    return session
