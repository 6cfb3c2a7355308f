"""Groups of commands that import the module of a command when it is called.

The imports of all commands take longer than most commands run.
"""

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.core import Context
from click.shell_completion import CompletionItem

from climate.cli.completion import complete_names
from climate.cli.examples import add_examples

Sections = Mapping[str, Mapping[str, Sequence[str]]]
"""Heading -> command -> its place `module:attribute`, then the places of lists of further commands below it."""

HIDDEN = ""
"""Heading of the commands that no help lists."""


class LazyGroup(click.Group):
    """A group whose commands are imported by `get_command`, and listed in sections by its help."""

    def __init__(self, *args: Any, sections: Sections, base: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections = sections
        self.base = base
        """Package that the places are relative to."""
        self.places = {name: places for rows in sections.values() for name, places in rows.items()}

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of all commands but the hidden ones, in alphabetical order."""
        return sorted(self.places.keys() - self.sections.get(HIDDEN, {}).keys())

    def get_command(self, ctx: Context, cmd_name: str) -> click.Command | None:
        """Return a command after the import of its module; None if there is no such command."""
        if cmd_name not in self.commands and cmd_name in self.places:
            first, *below = self.places[cmd_name]
            command = self._at(first)
            for place in below:
                for one in self._at(place):
                    command.add_command(one)
            complete_names(command)
            add_examples(command, cmd_name)
            self.commands[cmd_name] = command
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a line; a usage error names the commands whose names are near."""
        if args and not args[0].startswith("-") and args[0] not in self.places and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx))
            raise click.NoSuchCommand(args[0], possibilities=near, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section below its heading."""
        width = max(map(len, self.places))
        for heading, rows in self.sections.items():
            if heading == HIDDEN:
                continue
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self._says(ctx, name, formatter.width)) for name in rows])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with a text, and the options; no module is imported for that."""
        names = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def _says(self, ctx: Context, name: str, width: int) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(max(width - 20, 20)) if command else ""

    def _at(self, place: str) -> Any:
        module, _, attribute = place.partition(":")
        return getattr(import_module(f"{self.base}.{module}"), attribute)
