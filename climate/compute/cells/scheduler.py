"""Scheduler of cells: chooses the cell of a build, level by level, down to the cell that boots it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from climate.compute import boot
from climate.compute.cells import build_request, candidates, messaging, neighbours, paths, state
from climate.compute.cells.build_request import TARGET_CELL, Build
from climate.compute.cells.candidates import Candidate
from climate.compute.cells.dispatch import CellContext, Handlers
from climate.compute.cells.errors import CellNotFound, NoCellsAvailable, Postpone
from climate.compute.cells.messages import UP, Message
from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.store import cell_builds, cell_messages, cell_resources
from climate.compute.store.failures import DATABASE_ERRORS

log = structlog.get_logger(__name__)

RUN_INSTANCE = "schedule_run_instance"
"""Method of each cell that takes a build."""

FAULT = "instance_fault_create_at_top"
"""Method of the top cell that puts servers into ERROR: (instances: their ids, message)."""

LEAST_DELAY = 1.0
"""Seconds between two attempts at least."""

RunHere = Callable[[Compute, Build], Sequence[str]]
"""Boots a build in this cell; the ids of its servers that there are, those in ERROR included."""


def run_here(compute: Compute, build: Build) -> Sequence[str]:
    """Boot a build in this cell, unless that was done before; the ids of its servers that there are.

    Raises CellError for a flavor, image or network that is not here, and what `boot` raises.
    """
    with compute.engine.connect() as conn:
        request = build_request.boot_request(conn, build)
    made = boot.boot_from_cell(compute, request, build.build_id, build.server_ids)
    if made:
        return [server.id for server in made]
    with compute.engine.connect() as conn:
        return cell_resources.known_servers(conn, build.server_ids)


@dataclass(frozen=True, slots=True)
class CellScheduler:
    """The scheduler of one cell.  `run_here` boots what stays in it."""

    run_here: RunHere = run_here
    shuffle: Callable[[list[Candidate]], None] = field(default=random.SystemRandom().shuffle)
    """Mixes the candidates before they are weighed, so that equal ones take turns."""

    def handlers(self) -> Handlers:
        """Return the methods that other cells may call."""
        return Handlers(targeted={RUN_INSTANCE: self.schedule_run_instance})

    def schedule_run_instance(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> None:
        """Send a build to the best cell, or boot it here.

        Tried again while there is no cell for it; when all attempts have failed,
        and after any other error, its servers go into ERROR.
        """
        build, options = build_request.read(kwargs), context.compute.cells
        try:
            self._place(context, build)
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

    def _place(self, context: CellContext, build: Build) -> None:
        here = build.path or context.name
        if build.cell == here:
            self._run(context.compute, build)
            return
        following = _target(build, here)
        if following is None and TARGET_CELL in build.hints:
            build = build.without_hint(TARGET_CELL)
            if build.admin:
                self._run(context.compute, build)
                return
        name = following or self._chosen(context, build)
        if name == context.name:
            self._run(context.compute, build)
            return
        if name not in context.children:
            raise CellNotFound(f"Cell {paths.join(here, name)} could not be found.")
        log.info("a cell is chosen", build=build.build_id, path=paths.join(here, name))
        with context.compute.engine.begin() as conn:
            # Sent twice, it might go to two cells.
            if cell_messages.once(conn, build.build_id):
                sent = replace(build, path=paths.join(here, name))
                messaging.cast(context.compute, conn, name, RUN_INSTANCE, sent.to_kwargs())
                cell_builds.sent(conn, build.build_id, name, build.server_ids)

    def _chosen(self, context: CellContext, build: Build) -> str:
        found = candidates_of(context.compute)
        self.shuffle(found)
        left, reasons = candidates.passing(found, build)
        if not left:
            told = "; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()))
            raise NoCellsAvailable(f"{NoCellsAvailable.__doc__} {told}".strip())
        return candidates.weighed(left, build, context.compute.cells)[0][1].name

    def _run(self, compute: Compute, build: Build) -> None:
        there = self.run_here(compute, build)
        missing = [server_id for server_id in build.server_ids if server_id not in there]
        if missing:
            fail(compute, missing, f"Only {len(there)} of {len(build.server_ids)} servers of the request were placed.")


def candidates_of(compute: Compute) -> list[Candidate]:
    """Return the cells that a build may go to: the children, and this cell if it has nodes or no children."""
    with compute.engine.connect() as conn:
        now, mine = compute.now(conn), state.own(compute, conn)
        children = neighbours.around(conn).children
    found = [
        Candidate(
            name,
            capabilities=cell.capabilities,
            capacities=cell.capacities,
            # Nothing is known of a cell that has never reported.
            offers={} if cell.last_seen is None else cell.offers,
            weight_offset=cell.weight_offset,
            weight_scale=cell.weight_scale,
            mute=state.is_mute(compute, cell, now),
        )
        for name, cell in children.items()
    ]
    if not compute.cells.is_api and (mine.capacities or not found):
        # A flavor or image that is not here is told by the boot itself.
        offers = mine.offers if found else {}
        found.append(Candidate(compute.cells.name, True, mine.capabilities, mine.capacities, offers))
    return found


def fail(compute: Compute, server_ids: Sequence[str], reason: str) -> None:
    """Tell the top cell that these servers cannot be had."""
    log.warning("servers of a build fail", servers=list(server_ids)[:10], reason=reason)
    with compute.engine.begin() as conn:
        kwargs = {"instances": list(server_ids), "message": reason}
        messaging.broadcast(compute, conn, UP, FAULT, kwargs, run_locally=True)


def _target(build: Build, here: str) -> str | None:
    """Return the child on the way to the cell of the build, or to the one that an administrator names; else None.

    The hint of anybody else is ignored.  Raises CellNotFound for a cell that is not below this one.
    """
    target = build.cell or (build.hints.get(TARGET_CELL) if build.admin else None)
    if target is None or target == here:
        return None
    if not paths.is_path(target) or not paths.is_prefix(here, paths.split(target)):
        raise CellNotFound(f"Cell {str(target)[:200]} could not be found below {here}.")
    return paths.split(target)[paths.hops(here) + 1]
