"""Options that several commands share."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypedDict, TypeVar

import click

from climate.cli.connection.session import current
from climate.cli.dates import SpanType

FORMATS = ("table", "json", "yaml", "csv", "value")
F = TypeVar("F", bound=Callable[..., object])


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if parameter.name:
        setattr(current(), parameter.name, value)


def output_options(command: F) -> F:
    """Add -f and -c."""
    form = click.option(
        "-f", "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
        expose_value=False, is_eager=True, callback=_keep, help="Form of the output.",
    )  # fmt: skip
    columns = click.option(
        "-c", "--column", "columns", multiple=True, metavar="COL", expose_value=False, callback=_keep,
        help="Show this column; repeatable.",
    )  # fmt: skip
    for name, says in TIMES.items():
        command = click.option(
            f"--{name}", name, is_flag=True, expose_value=False, callback=_keep, help=says,
        )(command)  # fmt: skip
    return form(columns(command))


TIMES = {
    "iso": "Times of tables in UTC as 2026-11-20T17:45:00Z.",
    "utc": "Times of tables in UTC instead of the local zone.",
}
"""Option -> help, for the forms of times."""


def listed(command: F) -> F:
    """Add -f, -c, --long and --sort."""
    long = click.option(
        "--long", "long", is_flag=True, expose_value=False, callback=_keep,
        help="Show all columns, and whole ids, at any width of the terminal.",
    )  # fmt: skip
    sort = click.option(
        "--sort", "sort", multiple=True, metavar="COL[:desc]", expose_value=False, callback=_keep,
        help="Sort by this column; repeatable.",
    )  # fmt: skip
    return output_options(sort(long(command)))


class WaitOptions(TypedDict):
    """Options of `waited`."""

    wait: bool
    timeout: timedelta


def waited(command: F) -> F:
    """Add --wait and --timeout; the command gets `wait` and `timeout` (seconds)."""
    wait = click.option("--wait", is_flag=True, help="Wait until it is done.")
    timeout = click.option(
        "--timeout", type=SpanType(), default="10m", show_default=True, help="Timeout; exit code 7 after it."
    )
    return wait(timeout(command))


def dry_run(command: F) -> F:
    """Add --dry-run; the command gets `dry_run`."""
    says = "Show the result without any change."
    return click.option("--dry-run", is_flag=True, help=says)(command)


def dry(dry_run: bool) -> dict[str, str]:
    """Return the query parameters of a request that supports a dry run."""
    if dry_run:
        current().say("dry run: nothing was changed")
    return {"dry_run": "true"} if dry_run else {}


class PairType(click.ParamType[tuple[str, str]]):
    """A click parameter for KEY=VALUE."""

    name = "key=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return (str(value[0]), str(value[1]))
        key, equals, rest = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return (key, rest)


class JsonType(click.ParamType[object]):
    """A click parameter for a JSON text of one of the given types."""

    name = "json"

    def __init__(self, *types: type, wanted: str = "value") -> None:
        self.types = types
        self.wanted = wanted

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str):
            return value
        try:
            read = json.loads(value)
        except (ValueError, RecursionError) as wrong:
            self.fail(f"{value!r} is not JSON: {wrong}", param, ctx)
        if self.types and not isinstance(read, self.types):
            self.fail(f"{value!r} is not a JSON {self.wanted}", param, ctx)
        return read


class ReservationType(JsonType):
    """A reservation as a JSON object, or as `resource_type=…,key=value,…`, the form of Blazar's client."""

    name = "reservation"

    def __init__(self) -> None:
        super().__init__(dict, wanted="object")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str) or value.lstrip().startswith("{"):
            return super().convert(value, param, ctx)
        pairs = [part.partition("=") for part in re.split(r",(?=[a-z_]+=)", value)]
        wrong = [key for key, equals, _ in pairs if not equals or not key]
        if wrong:
            self.fail(f"{value!r} is neither a JSON object nor KEY=VALUE,…", param, ctx)
        return {key: _plain(key, text) for key, _, text in pairs}


def _plain(key: str, text: str) -> object:
    """Return a number, a list or a boolean if the text is one; requirements stay texts."""
    if key.endswith("_properties"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class RequirementsType(JsonType):
    """Requirements like `["and", [">=", "$vcpus", "4"], …]`; checked to be JSON, sent as the text they are."""

    name = "requirements"

    def __init__(self) -> None:
        super().__init__(list, wanted="list")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value:
            super().convert(value, param, ctx)
        return str(value)


def seconds(timeout: timedelta | str) -> float:
    """Return a --timeout in seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else 0.0


def exactly_one(names: Sequence[str], *values: object) -> None:
    """Raise a usage error unless exactly one of the options was given."""
    if sum(value is not None for value in values) != 1:
        raise click.UsageError(f"give exactly one of {', '.join(names)}")
