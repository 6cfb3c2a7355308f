"""climate import: take over the reservations of another service."""

from typing import TYPE_CHECKING

import click

from climate.cli.connection.session import Session, current
from climate.cli.errors import ERROR, Failure
from climate.cli.operations.journal import direct_engine
from climate.cli.options import dry_run, listed

if TYPE_CHECKING:
    # Import the engine late, because that takes longer than most commands run.
    from climate.service.blazar_import.importer import Report

COLUMNS = ("kind", "id", "name", "reason", "remedy")


@click.group("import")
def group() -> None:
    """Take over the reservations of another service; commands use the databases directly."""


@group.command("blazar")
@click.option(
    "--database",
    required=True,
    metavar="URL",
    help="Blazar's database: mysql://USER:PASSWORD@HOST/NAME, mariadb:// or postgresql://.",
)
@click.option("--resume", is_flag=True, help="Continue an import: skip what is here already.")
@dry_run
@listed
def blazar(database: str, resume: bool, dry_run: bool) -> None:
    """Import hosts, floating IPs and leases of Blazar, with their ids, dates, states and allocations.

    Shows what cannot be imported, with the reason and a remedy, and exits with 1 then.  Nothing is changed in the
    cloud or in Blazar's database.
    """
    session = current()
    from climate.service.blazar_import import importer, source

    with direct_engine(session) as climate:
        report = importer.run_import(climate, source.read(database), dry_run=dry_run, resume=resume)
    _show(session, report, dry_run)


def _show(session: Session, report: "Report", dry_run: bool) -> None:
    done = "to import" if dry_run else "imported"
    session.say(
        f"{done}: {report.hosts} hosts, {report.addresses} floating IPs, {report.leases} leases with "
        f"{report.allocations} allocations; here already: {report.known} leases"
    )
    session.show_all([{name: getattr(refusal, name) for name in COLUMNS} for refusal in report.refusals], COLUMNS)
    if report.refusals:
        then = "repeat the dry run, or import the others" if dry_run else "repeat it with --resume"
        hint = f"follow the remedies, then {then}; docs/from-blazar.md explains them"
        raise Failure(f"{len(report.refusals)} objects cannot be imported", ERROR, hint)
