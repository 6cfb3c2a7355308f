"""climate demo: the life of a lease on a stack of its own, every step verified through the API."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import httpx

from climate.cli.demo import cleanup, host_steps, lease_steps, setup_steps, storage_steps
from climate.cli.demo.actors import Play, Unseen, play_on
from climate.cli.demo.screen import Screen, screen
from climate.cli.demo.stack import running, surroundings
from climate.cli.errors import Failure
from climate.cli.leases.lease import HISTORY_COLUMNS, told
from climate.cli.operations import lab as labs
from climate.cli.operations.journal import engine_room
from climate.cli.output import records
from climate.cli.session import Session, current

Step = Callable[[Play], str]


def journal_agrees(play: Play) -> str:
    """The journal and the rows agree"""
    from climate.service.journal import check

    with engine_room(Session(play.stack.environ)) as climate:
        differences = list(check.differences(climate))
    if differences:
        raise Unseen(f"{len(differences)} differences: {differences[0]}")
    return "no difference"


def history_is_told(play: Play) -> str:
    """The history of the lease can be read"""
    entries = play.member.json("reservation", "GET", f"/leases/{play.lease['id']}/history")["history"]
    kinds = [entry["kind"] for entry in entries]
    if kinds[0] != "LeaseCreated" or kinds.count("EventFinished") < 2:
        raise Unseen(f"it tells of {', '.join(kinds)}")
    play.screen.say(records(told(entries), "table", HISTORY_COLUMNS).rstrip())
    return f"{len(entries)} facts, from {kinds[0]} to {kinds[-1]}"


STEPS: tuple[Step, ...] = (
    setup_steps.stack_answers,
    setup_steps.hosts_are_kept,
    setup_steps.sizes_are_known,
    setup_steps.visitor_comes,
    lease_steps.lease_is_promised,
    host_steps.idle_host_goes_off,
    host_steps.sleeping_host_is_promised,
    lease_steps.lease_starts,
    lease_steps.server_boots,
    lease_steps.others_are_refused,
    lease_steps.no_hint_is_refused,
    lease_steps.sleeper_is_reserved,
    storage_steps.storage_is_promised,
    storage_steps.volume_is_attached,
    storage_steps.storage_goes,
    lease_steps.sleeper_wakes,
    lease_steps.sleeper_goes,
    host_steps.host_is_up_in_time,
    host_steps.hours_are_told,
    host_steps.server_outlives_lease,
    host_steps.host_comes_home,
    lease_steps.lease_ends,
    lease_steps.all_is_given_back,
    journal_agrees,
    history_is_told,
)
"""In this order; the first line of each docstring is its title."""


@click.command("demo")
@click.option("--lab/--no-lab", default=True, help="In a lab with real networks, where there can be one.")
def command(lab: bool) -> None:
    """Go through the life of a lease on a stack of its own; 0 only if every step was verified."""
    session = current()
    networks = _networks(session, lab)
    environ = surroundings(session.environ)
    shown = screen(session.colourful)
    shown.say(f"climate demo, in {environ['CLIMATE_HOME']}; {networks}")
    try:
        verified = _perform_on_a_stack(environ, shown)
    finally:
        shown.close()
    shown.say(f"{verified} of {len(STEPS)} steps verified in {shown.spent:.0f} s")
    if verified < len(STEPS):
        logs = f"look into {environ['CLIMATE_HOME']}/logs"
        raise Failure("the demo stopped at a step that it could not verify", hint=logs)


def _networks(session: Session, lab: bool) -> str:
    """What kind of networks there are; where a lab can be, this process becomes the demo in one."""
    if session.settings.network_driver == "linux":
        return f"networks are real: namespaces {', '.join(labs.HOSTS)}"
    if not lab:
        return "networks are recorded only"
    home = Path(surroundings(session.environ)["CLIMATE_HOME"])
    reason = labs.instead(session, home, (sys.executable, "-m", "climate", "demo"))
    return f"networks are recorded only: {reason}"


def _perform_on_a_stack(environ: Mapping[str, str], shown: Screen) -> int:
    with running(environ, lambda spent: shown.waiting("the stack to start", spent=spent)) as stack:
        with play_on(stack, shown) as play:
            verified = perform(play)
            if verified == len(STEPS):
                cleanup.visitor_goes(play)
        shown.waiting("the stack to stop")
    return verified


def perform(play: Play, steps: tuple[Step, ...] = STEPS) -> int:
    """Go through the steps until one is not verified; how many were."""
    for number, step in enumerate(steps):
        if not _verified(play.screen, step, play):
            return number
    return len(steps)


def _verified(shown: Screen, step: Step, play: Play) -> bool:
    title = (step.__doc__ or "").strip()
    try:
        shown.done(title, step(play))
    except Unseen as why:
        shown.failed(title, str(why))
        return False
    except Failure as failure:
        asked, request_id = failure.details.get("request", "asked for it"), failure.request_id
        shown.failed(title, f"{asked}: {failure}" + (f" (request id {request_id})" if request_id else ""))
        return False
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as wrong:
        shown.failed(title, f"the answer has another form than expected, {type(wrong).__name__}: {wrong}")
        return False
    return True
