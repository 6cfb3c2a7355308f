"""climate demo: the life of a lease on its own stack, each step verified through the API."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click
import httpx

from climate.cli.connection.session import Session, current
from climate.cli.demo import (
    cleanup,
    cluster_steps,
    host_steps,
    lease_steps,
    setup_steps,
    storage_steps,
)
from climate.cli.demo import (
    clusters as clusters_demo,
)
from climate.cli.demo.actors import Play, Unseen, play_on
from climate.cli.demo.journal_steps import history_is_told, journal_agrees
from climate.cli.demo.screen import Screen, screen
from climate.cli.demo.stack import HOME, running, surroundings
from climate.cli.errors import Failure
from climate.cli.operations import lab as labs

Step = Callable[[Play], str]
P = TypeVar("P", bound=Play)


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
"""Steps in their order; the first line of each docstring is the title."""

ENDING = (
    "Shown: hosts are promised, lent and given back on time. Boots of others are refused. A server sleeps until its",
    "lease starts. Storage is there for as long as its lease. A host is off until it is needed, then it is recycled.",
    "Look next: `climate up --demo` starts a stack to try it yourself, `climate lease create --help` has examples.",
    "Logs of this demo: {home}/logs.",
)
"""Lines after all steps were verified."""

PAGE = (
    "What just happened, in a browser: `CLIMATE_HOME={home} climate up --demo --port {port}` starts the stack again.",
    "Then the page of the lease has its history: {url}/ui/leases/{lease}#history",
    "Sign in as demo; the password is in {home}/demo-password.",
)
"""Last lines: the page that shows the lease of the demo."""


@click.command("demo")
@click.option("--lab/--no-lab", default=True, help="In a lab with real networks, if the machine supports it.")
@click.option("--clusters", is_flag=True, help="The life of a cluster instead: members fail, return and join.")
def command(lab: bool, clusters: bool) -> None:
    """Run the life of a lease on a stack of its own; exit code 0 only if every step was verified."""
    session = current()
    networks = "networks are recorded only" if clusters else _networks(session, lab)
    environ = surroundings(session.environ, cluster_steps.HOME if clusters else HOME)
    steps = len(cluster_steps.STEPS if clusters else STEPS)
    shown = screen(session.colourful)
    shown.say(f"climate demo, in {environ['CLIMATE_HOME']}; {networks}")
    page: Sequence[str] = ()
    try:
        if clusters:
            verified = _perform_on_a_cluster(environ, shown)
        else:
            verified, page = _perform_on_a_stack(environ, shown)
    finally:
        shown.close()
    shown.say(f"{verified} of {steps} steps verified in {shown.spent:.0f} s")
    if verified < steps:
        logs = f"see {environ['CLIMATE_HOME']}/logs"
        raise Failure("a step of the demo failed", hint=logs)
    if not clusters:
        for line in (*(line.format(home=environ["CLIMATE_HOME"]) for line in ENDING), *page):
            shown.say(line)


def _networks(session: Session, lab: bool) -> str:
    """Return the kind of networks; if a lab is possible, restart this process in one."""
    if session.settings.network_driver == "linux":
        return f"networks are real: namespaces {', '.join(labs.HOSTS)}"
    if not lab:
        return "networks are recorded only"
    home = Path(surroundings(session.environ)["CLIMATE_HOME"])
    reason = labs.instead(session, home, (sys.executable, "-m", "climate", "demo"))
    return f"networks are recorded only: {reason}"


def _perform_on_a_stack(environ: Mapping[str, str], shown: Screen) -> tuple[int, Sequence[str]]:
    with running(environ, lambda spent: shown.waiting("the stack to start", spent=spent)) as stack:
        with play_on(stack, shown) as play:
            verified = perform(play)
            if verified == len(STEPS):
                cleanup.visitor_goes(play)
            page = page_of(play) if verified == len(STEPS) else ()
        shown.waiting("the stack to stop")
    return verified, page


def page_of(play: Play) -> list[str]:
    """Return the lines that name the page of the first lease, and how the stack is started again for it."""
    environ, url = play.stack.environ, play.stack.url.rstrip("/")
    home, port = shlex.quote(environ["CLIMATE_HOME"]), environ["CLIMATE_PORT"]
    return [line.format(home=home, port=port, url=url, lease=play.lease["id"]) for line in PAGE]


def _perform_on_a_cluster(environ: Mapping[str, str], shown: Screen) -> int:
    own = clusters_demo.surroundings(environ, Path(environ["CLIMATE_HOME"]))
    with clusters_demo.running(own, lambda spent: shown.waiting("the stack to start", spent=spent)) as there:
        stack, rack, ground = there
        with play_on(stack, shown) as play:
            acted = cluster_steps.ClusterPlay(stack, shown, play.admin, play.member, rack=rack, ground=ground)
            verified = _run_steps(acted, cluster_steps.STEPS)
            if verified == len(cluster_steps.STEPS):
                cleanup.clear(acted)
        shown.waiting("the stack to stop")
    return verified


def perform(play: Play, steps: tuple[Step, ...] = STEPS) -> int:
    """Run the steps until one is not verified; return the number of verified steps."""
    return _run_steps(play, steps)


def _run_steps(play: P, steps: tuple[Callable[[P], str], ...]) -> int:
    for number, step in enumerate(steps):
        if not _verified(play.screen, step, play):
            return number
    return len(steps)


def _verified(shown: Screen, step: Callable[[P], str], play: P) -> bool:
    title = (step.__doc__ or "").strip()
    shown.begins(title)
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
