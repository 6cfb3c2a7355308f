"""Leases that start one by one while nothing else happens: how late each is."""

import sys
from datetime import timedelta

from benchmarks import blazar_figures, cloud, processes, scratch
from benchmarks.events import make, now, started
from benchmarks.figures import head, line, spread, step


def main(short: bool) -> None:
    seconds = 15 if short else 60
    count = 2 * seconds
    head(f"{count} leases that start within {seconds} s, one poller, one worker, otherwise idle")
    with scratch.place(broker=True) as place:
        deployment = place.deployment()
        cloud.furnish(deployment, count)
        with processes.running(place.settings, "poller", "worker"), step("waiting for the leases to start"):
            first = now(deployment.climate.engine) + timedelta(seconds=12)
            make(deployment, [first + timedelta(seconds=0.5137 * number) for number in range(count)])
            found = started(deployment.climate.engine, count)
        deployment.climate.engine.dispose()
    claimed, active = spread([claimed for claimed, _ in found]), spread([active for _, active in found])
    line("due to claimed", claimed, "p99 < 250 ms", f"median {blazar_figures.LATENESS_MS:,.0f} ms")
    line("due to ACTIVE", active, "", f"{blazar_figures.LATENESS_MS / active.median:,.0f}x")


if __name__ == "__main__":
    main("--short" in sys.argv)
