"""Benchmarks by their names, or all of them: in short, or with --long at the length that figures are quoted from."""

import argparse
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    allocate,
    blazar_import,
    calendars,
    cells,
    cli,
    create,
    energy,
    events,
    figures,
    find,
    history,
    http,
    idle,
    lateness,
    networks,
    pages,
    placement,
    pool_scaling,
    race,
    snapshot,
    waiting,
    waiting_month,
    zones,
)

ALL = {
    module.__name__.rpartition(".")[2]: module.main
    for module in (
        create,
        allocate,
        race,
        http,
        events,
        find,
        waiting,
        waiting_month,
        lateness,
        idle,
        cli,
        snapshot,
        placement,
        energy,
        pool_scaling,
        history,
        blazar_import,
        calendars,
        pages,
        networks,
        cells,
        zones,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ALL], metavar="NAME", help=f"one of {', '.join(ALL)}")
    parser.add_argument("--long", action="store_true", help="measure at the length that figures are quoted from")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    given = parser.parse_args()
    for name in given.names or ALL:
        ALL[name](not given.long)
    if given.json:
        figures.write(given.json, about())


def about() -> dict[str, object]:
    """Return on what and when something is measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return {
        "commit": commit.stdout.strip(),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
