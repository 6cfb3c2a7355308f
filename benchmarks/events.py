"""Leases due at the same second until all are ACTIVE, then over until all have ended, beside tasks that do nothing."""

import sys
import time
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Engine, text

from benchmarks import blazar_figures, ceiling_worker, cloud, processes, scratch
from benchmarks.figures import head, line, spread, step
from benchmarks.orders import SPEC
from benchmarks.processor_time import Meter
from benchmarks.scratch import CALLER
from climate.bootstrap import Deployment
from climate.domain.status import EventKind
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes

PATIENCE = 120.0

_DONE = text("""
    SELECT extract(epoch FROM first_claimed_at - due_at), extract(epoch FROM updated_at - due_at)
    FROM events WHERE kind = :kind AND status = 'DONE'
""")


def main(short: bool) -> None:
    count = 200 if short else 1000
    head(f"{count:,} leases due at the same second, one poller, two worker processes, bundled cloud")
    with scratch.place(broker=True) as place:
        deployment = place.deployment()
        cloud.furnish(deployment, count)
        with (
            processes.running(place.settings, "poller", "worker") as pids,
            step("making the leases and waiting for their start"),
        ):
            meter = Meter(pids, place.settings.database_url)
            made = make(deployment, [now(deployment.climate.engine) + timedelta(seconds=15 + count / 50)] * count)
            before = meter.read()
            found = started(deployment.climate.engine, count)
            work = meter.read().since(before, len(found))
            end(deployment, made, now(deployment.climate.engine) + timedelta(seconds=15 + count / 20))
            ended = started(deployment.climate.engine, count, EventKind.END)
        deployment.climate.engine.dispose()
        ceilings = {kind: ceiling_worker.rate(place.settings, kind, count) for kind in ceiling_worker.KINDS}
    last = max(active for _, active in found)
    rate = len(found) / last
    ratio = f"{blazar_figures.DUE_EVENTS_PER_SECOND}/s, {rate / blazar_figures.DUE_EVENTS_PER_SECOND:,.0f}x"
    target = f"{5 * count / 1000:.0f} s" if count >= 1000 else ""
    line(f"{len(found):,} of {count:,} ACTIVE after", f"{last:.2f} s", target and f"< {target}")
    line("due events", f"{rate:.0f}/s", "", ratio)
    line("due to ACTIVE", spread([active for _, active in found]))
    line("processor time of a due event, with that of waiting", work)
    ends = len(ended) / max(over for _, over in ended)
    line("due ends", f"{ends:.0f}/s")
    line("ceiling: tasks that do nothing", f"{ceilings['noop']:.0f}/s")
    line("ceiling: tasks of one UPDATE and its commit", f"{ceilings['update']:.0f}/s")
    line("due events beside tasks that do nothing", f"{rate / ceilings['noop']:.2f}", "0.25")
    line("due ends beside tasks that do nothing", f"{ends / ceilings['noop']:.2f}", "0.25")
    line("due events beside one UPDATE and its commit", f"{rate / ceilings['update']:.2f}")


def now(engine: Engine) -> datetime:
    """By the database's clock."""
    with engine.connect() as conn:
        return conn.execute(text("SELECT clock_timestamp()")).scalar_one()  # type: ignore[no-any-return]


def make(deployment: Deployment, starts: list[datetime]) -> list[UUID]:
    """One lease of one host for each start, which have to be made before the first of them is due.

    They last so long that before_end_lease is not due together with the start.
    """
    made = []
    for number, start in enumerate(starts):
        order = LeaseRequest(f"due-{number}", start, start + timedelta(hours=4), reservations=(SPEC,))
        made.append(leases.create(deployment.climate, CALLER, order).id)
    if now(deployment.climate.engine) > starts[0]:
        print(" the leases were not made in time, which spoils the figure:", end="")
    return made


def end(deployment: Deployment, made: list[UUID], at: datetime) -> None:
    """Let the leases end at one moment, for which all of them have to be changed before."""
    for lease_id in made:
        update.update(deployment.climate, CALLER, lease_id, Changes(end=at))
    if now(deployment.climate.engine) > at:
        print(" the ends were not moved in time, which spoils the figure:", end="")


def started(engine: Engine, count: int, kind: EventKind = EventKind.START) -> list[tuple[float, float]]:
    """Seconds from due to claimed, and from due to done, of all events of a kind that are done; waits for `count`."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with engine.connect() as conn:
            found = [(float(claimed), float(active)) for claimed, active in conn.execute(_DONE, {"kind": kind})]
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


if __name__ == "__main__":
    main("--short" in sys.argv)
