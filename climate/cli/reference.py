"""Reference of the commands in Markdown, generated from the commands."""

from collections.abc import Iterator

import click

from climate.cli.errors import EXIT_CODES


def render(root: click.Command) -> str:
    """Return every command with its arguments and options, and then the exit codes."""
    lines = ["| command | what it does | options |", "|---|---|---|"]
    lines += [_row(name, command) for name, command in walk(root, "climate")]
    lines += ["", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands of a group, without groups, by their full names in alphabetical order."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    for inner in sorted(command.list_commands(context)):
        below = command.get_command(context, inner)
        if below is not None:
            yield from walk(below, f"{name} {inner}")


def _row(name: str, command: click.Command) -> str:
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    usage = " ".join([name, *(_argument(argument) for argument in arguments)])
    listed = " ".join(f"`{'/'.join([*option.opts, *option.secondary_opts])}`" for option in options)
    return f"| `{_escaped(usage)}` | {_escaped(command.get_short_help_str(200))} | {listed} |"


def _argument(argument: click.Argument) -> str:
    shown = argument.metavar or (argument.name or "").upper()
    return shown if argument.required else f"[{shown}]"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
