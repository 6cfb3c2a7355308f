"""climate doctor: the configuration with its reasons, and checks of all components."""

import click

from climate.cli.connection.session import current
from climate.cli.errors import ERROR, Failure
from climate.cli.operations.doctor_checks import BAD, CHECKS, Finding
from climate.cli.options import output_options


@click.command("doctor")
@output_options
def command() -> None:
    """Explain which stores are used and why, and check everything; exit code 1 if a check fails."""
    session = current()
    result: list[Finding] = []
    for check in CHECKS:
        result += check(session)
    session.show_all(
        [{"check": one.check, "is": one.level, "says": one.says} for one in result], ("check", "is", "says")
    )
    wrong = [one.check for one in result if one.level == BAD]
    if wrong:
        raise Failure(
            f"failed checks: {', '.join(wrong)}", ERROR, "see the failed checks above; `climate up` starts everything"
        )
