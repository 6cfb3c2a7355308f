"""Scheduler of cells: chooses the cell of a build, level by level, down to the cell that boots it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.builds import candidates
from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds.candidates import Candidate
from climate.compute.cells.builds.request import TARGET_CELL, Build
from climate.compute.cells.errors import CellNotFound, NoCellsAvailable, Postpone
from climate.compute.cells.messaging import messages, paths, send
from climate.compute.cells.messaging.dispatch import CellContext, Effect, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.models import Cell
from climate.compute.cells.state import state
from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.servers import create
from climate.compute.store.cells import builds, cells, resources
from climate.compute.store.db_errors import DATABASE_ERRORS
from climate.database.connections import reading

log = structlog.get_logger(__name__)

RUN_INSTANCE = "schedule_run_instance"
"""Method of each cell that schedules a build."""

FAULT = "instance_fault_create_at_top"
"""Method of the top cell that puts servers into ERROR: (instances: their ids, message)."""

LEAST_DELAY = 1.0
"""Minimum seconds between two attempts."""

RunHere = Callable[[Compute, Build], Sequence[str]]
"""Function that boots a build in this cell, and returns the ids of its servers, including those in ERROR."""


def run_here(compute: Compute, build: Build) -> Sequence[str]:
    """Boot a build in this cell unless it was booted before; return the ids of its servers.

    Raise CellError for a flavor, image or network that is not here, and the errors of `boot`.
    """
    with reading(compute.engine) as conn:
        request = build_request.boot_request(conn, build)
    made = create.boot_from_cell(compute, request, build.build_id, build.server_ids)
    if made:
        return [server.id for server in made]
    with reading(compute.engine) as conn:
        return resources.existing_servers(conn, build.server_ids)


@dataclass(frozen=True, slots=True)
class CellScheduler:
    """Scheduler of one cell. `run_here` boots the builds that stay in it."""

    run_here: RunHere = run_here
    shuffle: Callable[[list[Candidate]], None] = field(default=random.SystemRandom().shuffle)
    """Function that shuffles the candidates before weighing, so that equal ones take turns."""

    def handlers(self) -> Handlers:
        """Return the methods that other cells may call."""
        return Handlers(targeted={RUN_INSTANCE: self.schedule_run_instance})

    def schedule_run_instance(
        self, context: CellContext, message: Message, kwargs: Mapping[str, object]
    ) -> Effect | None:
        """Send a build to the best cell, or boot it here.

        Without a cell it is retried. After the last attempt, and after any other error, its servers go into ERROR.
        """
        build, options = build_request.read(kwargs), context.compute.cells
        try:
            return self._place(context, build)
        except NoCellsAvailable as reason:
            if context.attempt <= options.scheduler_retries:
                log.info("a build waits for a cell", build=build.build_id, attempt=context.attempt, reason=str(reason))
                raise Postpone(max(LEAST_DELAY, options.scheduler_retry_delay)) from None
            fail(context.compute, build.server_ids, str(reason))
        except (Postpone, *DATABASE_ERRORS):
            raise
        except ComputeError as reason:
            fail(context.compute, build.server_ids, str(reason))
        except Exception:
            log.exception("a build failed", build=build.build_id)
            fail(context.compute, build.server_ids, f"The build failed in cell {message.routing_path}.")
        return None

    def sent_at_once(self, compute: Compute, conn: Connection, build: Build) -> bool:
        """Send a new build of the API cell to the best child; return False if none accepts it now."""
        try:
            name, build = self._next(compute, build, lambda: candidates_of(compute, conn))
        except ComputeError:
            return False
        if name == compute.cells.name or not cells.lock_shared(conn, name):
            return False
        sent = _sent(build, compute.cells.name, name)
        builds.sent(conn, build.build_id, name, build.server_ids)
        send.cast(compute, conn, name, RUN_INSTANCE, sent.to_kwargs())
        return True

    def _place(self, context: CellContext, build: Build) -> Effect | None:
        here = build.path or context.name
        name, build = self._next(context.compute, build, lambda: _candidates(context))
        if name == context.name:
            self._run(context.compute, build)
            return None
        if name not in context.children:
            raise CellNotFound(f"Cell {paths.join(here, name)} could not be found.")
        log.info("cell chosen", build=build.build_id, path=paths.join(here, name))
        message = _message(context, name, _sent(build, here, name))

        def write(conn: Connection, now: datetime) -> Sequence[tuple[Cell, Message]]:
            if not cells.lock_shared(conn, name):
                raise Postpone(0)  # The child was deleted meanwhile; there may be another one.
            # Sent twice, it might go to two cells.
            first = builds.sent(conn, build.build_id, name, build.server_ids)
            return [(context.children[name], message)] if first else ()

        return Effect(write)

    def _next(self, compute: Compute, build: Build, known: Callable[[], list[Candidate]]) -> tuple[str, Build]:
        """Return the next cell of a build, a child or this one, and the build for it."""
        here, me = build.path or compute.cells.name, compute.cells.name
        if build.cell == here:
            return me, build
        following = _target(build, here)
        if following is None and TARGET_CELL in build.hints:
            build = build.without_hint(TARGET_CELL)
            if build.admin:
                return me, build
        return following or self._chosen(compute, build, known()), build

    def _chosen(self, compute: Compute, build: Build, children: list[Candidate]) -> str:
        self.shuffle(children)
        left, reasons = candidates.passing(children, build)
        if not left:
            text = "; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()))
            raise NoCellsAvailable(f"{NoCellsAvailable.__doc__} {text}".strip())
        return candidates.weighed(left, build, compute.cells)[0][1].name

    def _run(self, compute: Compute, build: Build) -> None:
        there = self.run_here(compute, build)
        missing = [server_id for server_id in build.server_ids if server_id not in there]
        if missing:
            fail(compute, missing, f"Only {len(there)} of {len(build.server_ids)} servers of the request were placed.")


def _candidates(context: CellContext) -> list[Candidate]:
    compute = context.compute
    if not context.children and not compute.cells.is_api:
        return [_alone(compute)]
    # Consistency between these readings is not needed.
    with reading(compute.engine) as conn:
        return candidates_of(compute, conn)


def candidates_of(compute: Compute, conn: Connection) -> list[Candidate]:
    """Return the cells that a build may go to: the children, and this cell if it has nodes or no children."""
    is_api = compute.cells.is_api
    now, children = compute.now(conn), neighbours.around(conn).children
    mine = state.NOTHING if is_api else state.own(compute, conn)
    candidates = [
        Candidate(
            name,
            capabilities=cell.capabilities,
            capacities=cell.capacities,
            # A cell without a report has unknown offers.
            offers={} if cell.last_seen is None else cell.offers,
            weight_offset=cell.weight_offset,
            weight_scale=cell.weight_scale,
            mute=state.is_mute(compute, cell, now),
        )
        for name, cell in children.items()
    ]
    if not is_api and (mine.capacities or not candidates):
        alone = _alone(compute)
        candidates.append(replace(alone, capacities=mine.capacities, offers=mine.offers) if candidates else alone)
    return candidates


def _alone(compute: Compute) -> Candidate:
    """Return this cell if it is the only one; the boot itself reports a missing flavor or image."""
    return Candidate(compute.cells.name, compute.cells.capabilities)


def _sent(build: Build, here: str, name: str) -> Build:
    """Return a build as the cell at the path `here` sends it to its child `name`."""
    return replace(build, path=paths.join(here, name))


def _message(context: CellContext, name: str, build: Build) -> Message:
    options = context.compute.cells
    return messages.targeted(context.name, name, RUN_INSTANCE, build.to_kwargs(), DOWN, options.max_hop_count)


def fail(compute: Compute, server_ids: Sequence[str], reason: str) -> None:
    """Report to the top cell that these servers failed."""
    log.warning("servers of a build failed", servers=list(server_ids)[:10], reason=reason)
    with compute.engine.begin() as conn:
        kwargs = {"instances": list(server_ids), "message": reason}
        send.broadcast(compute, conn, UP, FAULT, kwargs, run_locally=True)


def _target(build: Build, here: str) -> str | None:
    """Return the child on the way to the cell of the build, or to an administrator's choice; None: any.

    The hint of other users is ignored. Raise CellNotFound for a cell that is not below this one.
    """
    target = build.cell or (build.hints.get(TARGET_CELL) if build.admin else None)
    if target is None or target == here:
        return None
    if not paths.is_path(target) or not paths.is_prefix(here, paths.split(target)):
        raise CellNotFound(f"Cell {str(target)[:200]} could not be found below {here}.")
    return paths.split(target)[paths.hops(here) + 1]
