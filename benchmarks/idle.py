"""Processor time of a stack that has nothing to do: the share of one core that each process takes, and all together."""

import sys
import time
from collections.abc import Mapping

import redis
from sqlalchemy import Engine, text

from benchmarks import cloud, processes, scratch
from benchmarks.figures import head, line, step
from benchmarks.processor_time import Meter

HOSTS = 1000
SETTLE_SECONDS = 20
"""Time for the first start to be over: the first rounds, and the plans of all connections."""

_COMMITS = text("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")


def main(short: bool) -> None:
    seconds = 60 if short else 300
    head(f"Idle stack: {HOSTS:,} hosts, one poller, two worker processes, two web processes, {seconds} s")
    with scratch.place(broker=True) as place:
        settings = processes.with_port(place.settings)
        deployment = place.deployment(pool_size=1)
        processes.prepare(settings)
        cloud.furnish(deployment, HOSTS)
        names = ("web", "poller", "worker")
        with processes.running(settings, *names) as pids, redis.Redis.from_url(settings.redis_url) as broker:
            meters = {name: Meter([pid], settings.database_url) for name, pid in zip(names, pids, strict=True)}
            with step("waiting for the first rounds to be over"):
                time.sleep(SETTLE_SECONDS)
            before, commits = _spent(meters, broker), _commits(deployment.climate.engine)
            with step("doing nothing"):
                time.sleep(seconds)
            after = _spent(meters, broker)
            made = _commits(deployment.climate.engine) - commits
        deployment.climate.engine.dispose()
    shares = {name: (after[name] - before[name]) / (10 * seconds) for name in after}
    for name, share in shares.items():
        line(f"share of one core: {name}", f"{share:.2f} %")
    line("share of one core: all together", f"{sum(shares.values()):.2f} %", "< 2 %")
    line("transactions", f"{made / seconds:.1f}/s")


def _spent(meters: Mapping[str, Meter], broker: "redis.Redis") -> dict[str, float]:
    """Milliseconds that each has taken until now; the backends of Postgres are those of connections that last."""
    readings = {name: meter.read() for name, meter in meters.items()}
    info = broker.info("cpu")
    return {
        **{name: one.processes for name, one in readings.items()},
        "Postgres": max(one.postgres for one in readings.values()),
        "broker": 1000 * (info["used_cpu_sys"] + info["used_cpu_user"]),  # type: ignore[index]
    }


def _commits(engine: Engine) -> int:
    with engine.begin() as conn:
        return int(conn.execute(_COMMITS).scalar_one())


if __name__ == "__main__":
    main("--short" in sys.argv)
