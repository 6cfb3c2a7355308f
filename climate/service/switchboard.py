"""The hands on the power supplies: many asked at once, and none that is slow or broken keeps the others from theirs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import structlog

from climate.context import Climate
from climate.domain.pools import HostPlace
from climate.power import OFF, ON, UNKNOWN, PowerDriver, PowerError, PowerRefused, Target
from climate.store.power import Supply
from climate.vault import Unreadable

log = structlog.get_logger(__name__)

AT_ONCE = 32
PATIENCE = 2.0
"""Seconds after which those that have answered are no longer kept waiting by those that have not."""


@dataclass(frozen=True, slots=True)
class Job:
    """A host to be looked at, and what it is to be asked for unless it is so already: ON, OFF or nothing."""

    place: HostPlace
    supply: Supply
    wish: str | None = None
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of it."""

    job: Job
    state: str | None
    """None: its supply did not say."""
    error: str = ""
    refused: bool = False
    """Another try is no use."""


def ask(climate: Climate, jobs: Sequence[Job]) -> Iterator[list[Seen]]:
    """Do the jobs, and give what came of them in two parts: of the quick ones, and of the others.

    To be called with no transaction open.
    """
    if not jobs:
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(jobs)), "power") as pool:
        futures = [pool.submit(_do, climate, job) for job in jobs]
        quick, slow = wait(futures, PATIENCE)
        for part in (quick, slow):
            if part:
                yield sorted((_result(one) for one in part), key=lambda seen: seen.job.supply.host)


def _result(future: "Future[Seen]") -> Seen:
    return future.result()


def _do(climate: Climate, job: Job) -> Seen:
    state = None
    try:
        driver, target = _reached(climate, job)
        state = driver.state(target)
        if job.wish == ON and state != ON:
            driver.on(target)
        if job.wish == OFF and state != OFF:
            driver.off(target, hard=job.hard)
    except (PowerRefused, Unreadable) as error:
        return Seen(job, state, str(error), refused=True)
    except PowerError as error:
        return Seen(job, state, str(error))
    except Exception as error:  # noqa: BLE001  drivers may be strangers', and what their errors say may be secret
        log.error("a power driver failed", driver=job.supply.driver, host=job.place.name, error=type(error).__name__)
        return Seen(job, state, f"the driver {job.supply.driver} failed: {type(error).__name__}")
    return Seen(job, state if state in (ON, OFF) else UNKNOWN)


def _reached(climate: Climate, job: Job) -> tuple[PowerDriver, Target]:
    supply = job.supply
    driver = climate.power.get(supply.driver)
    if driver is None:
        raise PowerRefused(f"there is no power driver {supply.driver} here")
    secrets = climate.vault.open(supply.secrets) if supply.secrets else {}
    return driver, Target(job.place.name, supply.settings, secrets)
