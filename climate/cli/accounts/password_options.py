"""Options for a new password.

None takes the password itself, because every user of a machine can read command lines.
"""

import secrets
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from climate.cli.connection.session import current
from climate.file_errors import reason_of

LENGTH = 24
F = TypeVar("F", bound=Callable[..., object])


def password_options(command: F) -> F:
    """Add --password-prompt and --password-file; the command gets `password_prompt` and `password_file`."""
    prompt = click.option("--password-prompt", is_flag=True, help="Prompt for the password.")
    file = click.option(
        "--password-file", metavar="PATH", help="Read the password from a file of one line; - is standard input."
    )
    return prompt(file(command))


def chosen(password_prompt: bool, password_file: str | None) -> str | None:
    """Return the password of the options; None if none was given."""
    if password_prompt and password_file is not None:
        raise click.UsageError("give one of --password-prompt and --password-file")
    if password_file is not None:
        return _in_file(password_file)
    return _prompted() if password_prompt else None


def generated() -> str:
    """Return a random password of letters and digits, which no shell and no command line reads as anything else."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(LENGTH))


def print_once_hint() -> None:
    """Print that a generated password is not shown again."""
    current().say("the password is shown this once; it is stored nowhere in clear")


def _prompted() -> str:
    is_interactive = current().interactive
    return str(click.prompt("Password", hide_input=is_interactive, confirmation_prompt=is_interactive, err=True))


def _in_file(path: str) -> str:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--password-file: {path} cannot be read: {reason_of(error)}") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password:
        raise click.UsageError(f"--password-file: {path} must have the password in one line, and nothing else")
    return password
