"""All benchmarks, one after the other: in short, or with --long at the length that figures are quoted from."""

import sys

from benchmarks import (
    allocate,
    cells,
    create,
    energy,
    events,
    http,
    lateness,
    networks,
    placement,
    pool_filling,
    race,
    snapshot,
    zones,
)


def main(short: bool) -> None:
    for measure in (
        create.main,
        allocate.main,
        race.main,
        http.main,
        events.main,
        lateness.main,
        snapshot.main,
        placement.main,
        energy.main,
        pool_filling.main,
        networks.main,
        cells.main,
        zones.main,
    ):
        measure(short)


if __name__ == "__main__":
    main("--long" not in sys.argv)
