"""The `climate` command."""

import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper

import click

from climate.cli.connection.session import Session
from climate.cli.errors import ERROR, OK, USAGE, Failure, failure_of
from climate.settings import environment

INTERRUPTED = 130


def main() -> None:
    """Run the command of this process; the entry point of `climate`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Names may have characters outside of the terminal's encoding; they are replaced.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:], environment()))


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command and return its exit code.  Data goes to stdout, everything else to stderr."""
    from climate.cli.root import root

    session = Session(environ)
    try:
        code = root.main(list(arguments), prog_name="climate", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else OK
    except Failure as failure:
        return _fail(session, failure)
    except click.UsageError as wrong:
        return _fail(session, _usage(wrong))
    except click.ClickException as wrong:
        return _fail(session, Failure(wrong.format_message(), ERROR))
    except (click.Abort, KeyboardInterrupt):
        session.say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return OK
    except Exception as bug:
        if foreseen := failure_of(bug):
            return _fail(session, foreseen)
        if environ.get("CLIMATE_LOG_LEVEL") == "DEBUG":
            raise
        return _fail(session, Failure(f"{type(bug).__name__}: {bug}", ERROR, "CLIMATE_LOG_LEVEL=DEBUG shows where"))
    finally:
        session.close()


def _usage(wrong: click.UsageError) -> Failure:
    path = wrong.ctx.command_path if wrong.ctx else "climate"
    if isinstance(wrong, click.NoSuchOption) and wrong.option_name == "--os-cloud":
        below = path.removeprefix("climate").strip()
        return Failure("--os-cloud belongs before the command", USAGE, f"climate --os-cloud NAME {below}".strip())
    return Failure(wrong.format_message(), USAGE, f"{path} --help")


def _fail(session: Session, failure: Failure) -> int:
    session.say_error(failure.json() if session.form == "json" else failure.text())
    return failure.code
