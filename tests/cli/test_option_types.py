"""The types of options beside the parameters of their commands."""

from collections.abc import Iterator
from typing import Any, Unpack, get_args, get_origin

import click
import pytest

from climate.cli.root import root


def commands(group: click.Group, path: str = "climate") -> Iterator[tuple[str, click.Command]]:
    """Yield all commands below a group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command


def typed() -> Iterator[tuple[str, click.Command, Any]]:
    """Yield the commands that get their options as one typed mapping."""
    for path, command in commands(root):
        for kind in getattr(command.callback, "__annotations__", {}).values():
            if get_origin(kind) is Unpack:
                yield path, command, get_args(kind)[0]


TYPED = list(typed())


def test_commands_with_typed_options_are_found() -> None:
    assert {"climate find", "climate boot", "climate lease create", "climate lease set"} <= {path for path, *_ in TYPED}


@pytest.mark.parametrize(("command", "kind"), [one[1:] for one in TYPED], ids=[one[0] for one in TYPED])
def test_each_key_is_a_parameter_of_the_command(command: click.Command, kind: Any) -> None:
    passed = {one.name for one in command.params if getattr(one, "expose_value", True)}
    plain = {name for name in command.callback.__annotations__ if name not in ("given", "link", "return")}  # type: ignore[union-attr]
    assert kind.__annotations__.keys() == passed - plain
