"""Parallel requests to power supplies, in which a slow or broken one does not delay the others."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock

import structlog

from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.hosts.pools import HostPlace
from climate.power import OFF, ON, UNKNOWN, PowerDriver, PowerError, PowerFenced, PowerRefused, Target
from climate.sealed_secrets import Unreadable
from climate.service.transaction import run
from climate.store.hosts import power
from climate.store.hosts.power import Supply

log = structlog.get_logger(__name__)

AT_ONCE = 32
PATIENCE = 2.0
"""Seconds after which the results of quick power supplies are returned without those of slow ones."""


FRESH = 10.0
"""Seconds for which the tokens of the last decisions are valid after they were read; a paused worker reads them again.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """Host to check, and the state to request if it differs: ON, OFF or none."""

    place: HostPlace
    supply: Supply
    wish: str | None = None
    hard: bool = False


@dataclass(frozen=True, slots=True)
class JobResult:
    """Result of a job."""

    job: Job
    state: str | None
    """None: its power supply gave no state."""
    error: str = ""
    refused: bool = False
    """Set if another attempt is useless."""


@dataclass
class _Decisions:
    """Tokens of the last decisions about the hosts of some jobs, read in one statement."""

    climate: Climate
    hosts: Sequence[int]
    known: Mapping[int, int] = field(default_factory=dict)
    read_at: float | None = None
    lock: Lock = field(default_factory=Lock)

    def refuse_late(self, job: Job) -> None:
        """Return if a job is the last decision about its host, otherwise raise PowerFenced."""
        with self.lock:
            if self.read_at is None or time.monotonic() - self.read_at > FRESH:
                started = time.monotonic()
                self.known = self._read()
                self.read_at = started
        if self.known.get(job.supply.host) != job.supply.token:
            raise PowerFenced(f"a later decision about the power of {job.place.name} was made")

    def _read(self) -> Mapping[int, int]:
        try:
            return run(self.climate, power.tokens, self.hosts)
        except ClimateError as error:
            raise PowerError(f"the last power decision cannot be read: {error}") from error


def run_jobs(climate: Climate, jobs: Sequence[Job]) -> Iterator[list[JobResult]]:
    """Carry out the jobs, and yield the results in two parts: the quick ones, and the others.

    Call it with no transaction open.
    """
    if not jobs:
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(jobs)), "power") as pool:
        decisions = _Decisions(climate, [job.supply.host for job in jobs if job.wish])
        futures = [pool.submit(_do, climate, job, decisions) for job in jobs]
        quick, slow = wait(futures, PATIENCE)
        for part in (quick, slow):
            if part:
                yield sorted((_result(one) for one in part), key=lambda seen: seen.job.supply.host)


def _result(future: "Future[JobResult]") -> JobResult:
    return future.result()


def _do(climate: Climate, job: Job, decisions: _Decisions) -> JobResult:
    state = None
    try:
        driver, target = _reached(climate, job)
        state = driver.state(target)
        if job.wish in (ON, OFF) and state != job.wish:
            decisions.refuse_late(job)
            _switch(driver, target, job)
    except (PowerRefused, Unreadable) as error:
        return JobResult(job, state, str(error), refused=True)
    except PowerError as error:
        return JobResult(job, state, str(error))
    except Exception as error:  # noqa: BLE001  drivers may be of other packages, and their errors may contain secrets
        log.error("power driver failed", driver=job.supply.driver, host=job.place.name, error=type(error).__name__)
        return JobResult(job, state, f"the driver {job.supply.driver} failed: {type(error).__name__}")
    return JobResult(job, state if state in (ON, OFF) else UNKNOWN)


def _switch(driver: PowerDriver, target: Target, job: Job) -> None:
    if job.wish == ON:
        driver.on(target)
    else:
        driver.off(target, hard=job.hard)


def _reached(climate: Climate, job: Job) -> tuple[PowerDriver, Target]:
    supply = job.supply
    driver = climate.power.get(supply.driver)
    if driver is None:
        raise PowerRefused(f"there is no power driver {supply.driver} here")
    secrets = climate.vault.open(supply.secrets) if supply.secrets else {}
    return driver, Target(job.place.name, supply.settings, secrets, supply.token)
