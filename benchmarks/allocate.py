"""The search for free hosts alone, among ever more allocations: it should hardly grow with them."""

import sys
from datetime import UTC, datetime

from benchmarks import scratch, seed
from benchmarks.figures import head, line, spread, timed
from benchmarks.orders import SPEC, windows
from climate.bootstrap import Deployment
from climate.domain.hosts import requirements
from climate.domain.period import Period
from climate.store.allocation import hosts as availability
from climate.store.allocation.hosts import HostRequest

HOSTS = 1000
SIZES = (0, 10_000, 100_000, 1_000_000)


def main(short: bool) -> None:
    head(f"Choosing hosts for one hour among {HOSTS:,}, which half of are taken")
    for known in SIZES[: 3 if short else 4]:
        with scratch.place() as place:
            deployment = place.deployment(pool_size=1)
            seed.hosts(deployment.climate.engine, HOSTS)
            seed.leases(deployment.climate.engine, known, datetime.now(UTC))
            seed.settle(deployment.climate.engine)
            for wanted in (1, 16):
                _measure(deployment, known, wanted, 50 if short else 300)
            deployment.climate.engine.dispose()


def _measure(deployment: Deployment, known: int, hosts: int, times: int) -> None:
    requirement = requirements.parse(SPEC["hypervisor_properties"])
    asked = windows(datetime.now(UTC))

    def choose() -> None:
        wanted = HostRequest(requirement, Period(*next(asked)), hosts, hosts)
        with deployment.climate.engine.connect() as conn:
            availability.pick(conn, wanted, patient=False)

    timed(choose, 10)
    line(f"{known:,} allocations, {hosts} wanted", spread(timed(choose, times)))


if __name__ == "__main__":
    main("--short" in sys.argv)
