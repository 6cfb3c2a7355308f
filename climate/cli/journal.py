"""climate journal: the record of all that happened, and whether the rows agree with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import click

from climate.cli.failures import ERROR, USAGE, Failure
from climate.cli.moments import Moment, MomentType
from climate.cli.options import listed, shown
from climate.cli.session import Session, current


@contextmanager
def engine_room(session: Session) -> Iterator[Any]:
    """The engine on its database, for commands that look past the API."""
    from climate import bootstrap

    deployment = bootstrap.build(session.settings)
    try:
        yield deployment.climate
    finally:
        deployment.climate.engine.dispose()


@click.group("journal")
def group() -> None:
    """The journal of leases; works on the database itself."""


@group.command("check")
@listed
def check() -> None:
    """Compare the journal with the rows; every difference is shown, and the exit code is 1 when there is one."""
    session = current()
    from climate.service import replay

    with engine_room(session) as climate:
        differences = list(replay.differences(climate))
    session.show_all([{"difference": str(one)} for one in differences], ("difference",))
    if differences:
        raise Failure(f"{len(differences)} differences", ERROR, "`climate journal rebuild` makes the rows anew")
    session.say("the rows are what the journal says")


@group.command("rebuild")
def rebuild() -> None:
    """Make the rows anew from the journal."""
    session = current()
    from climate.service import replay

    with engine_room(session) as climate:
        replay.rebuild(climate)
    session.say("the rows were made anew from the journal")


@group.command("show")
@click.argument("lease_id", metavar="LEASE")
@click.option("--at", type=MomentType(), help="As it was at this time.")
@shown
def show(lease_id: str, at: Moment | None) -> None:
    """Show the facts of a lease, or with --at its state at that time."""
    session = current()
    from climate.service import replay

    try:
        wanted = UUID(lease_id)
    except ValueError:
        raise Failure(f"{lease_id!r} is not the id of a lease", USAGE, "`climate lease list` shows the ids") from None
    with engine_room(session) as climate:
        with climate.engine.connect() as connection:
            when = at.when(climate.now(connection)) if at else None
        session.show_all(list(replay.story(climate, wanted, when)), ("version", "recorded_at", "kind", "body"))
