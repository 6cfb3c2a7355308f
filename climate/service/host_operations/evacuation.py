"""Servers of hosts that have failed are made anew on other hosts, once it is certain that they run no more.

A host is fenced first: that it is to be off is written down, its power supply is
asked to cut its power, and has said that it is off.  A host without a supply is left to an operator, who knows whether
it still runs.  Only hosts count from which the cloud hears nothing: one that is
merely disabled goes on with its servers.  A host that returns afterwards starts
nothing of what has left it: the cloud has these servers elsewhere by then.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import PoolCause
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.notifications import Notice
from climate.power import OFF
from climate.service.host_operations.round_settings import HANDS_ON
from climate.service.notifications import delivery
from climate.service.power import executor, switching
from climate.service.power.executor import Job
from climate.service.transaction import work
from climate.store.hosts import pool_membership, power
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Case:
    """A host that has failed, with its servers, and the token under which something may be done for them."""

    job: Job
    servers: Sequence[CloudServer]
    token: int

    @property
    def place(self) -> HostPlace:
        return self.job.place


def tend(climate: Climate) -> int:
    """Fence hosts that have failed for long enough, and evacuate those that are off; how many servers are made anew.

    Nothing where CLIMATE_EVACUATE_FAILED_HOSTS is not set.
    """
    if not climate.settings.evacuate_failed_hosts:
        return 0
    jobs = work(climate, lambda conn, patient: _claimed(climate, conn))
    try:
        cases = _with_servers(climate, jobs) if jobs else []
        fenced = _fenced(climate, _decided(climate, cases))
        return sum(_evacuated(climate, case) for case in cases if case.place.host in fenced)
    finally:
        if jobs:
            work(climate, lambda conn, patient: pool_membership.leave(conn, [job.place.host for job, _ in jobs]))


def _claimed(climate: Climate, conn: Connection) -> list[tuple[Job, int]]:
    """Hosts that are to be fenced.  One that somebody is switching on is not: it is about to come back."""
    now = climate.now(conn)
    before = now - timedelta(seconds=climate.settings.evacuate_after)
    failed = [place for place in pool_membership.listed(conn, Pool.FAILED) if place.since <= before and _is_down(place)]
    supplies = power.of(conn, [place.host for place in failed])
    jobs = [Job(place, supplies[place.host], OFF, hard=True) for place in failed if place.host in supplies]
    jobs = [job for job in jobs if not switching.is_coming(job.place, job.supply)]
    mine = pool_membership.tend(conn, [job.place.host for job in jobs], now, HANDS_ON) if jobs else frozenset()
    own = [job for job in jobs if job.place.host in mine]
    return list(zip(own, event_claims.tokens(conn, len(own)), strict=True)) if own else []


def _is_down(place: HostPlace) -> bool:
    """Whether a host has failed for a cause that its servers may not have survived."""
    return place.cause not in (PoolCause.DECLARED_WELL, PoolCause.NOT_CLEANED)


def _with_servers(climate: Climate, jobs: Sequence[tuple[Job, int]]) -> list[_Case]:
    """Hosts from which the cloud hears nothing, and that have servers: a host without any is not touched."""
    cases: list[_Case] = []
    with suppress(CloudError):  # the next round asks again
        silent = climate.cloud.silent_hosts()
        for job, token in jobs:
            servers = climate.cloud.servers_on(job.place.name) if job.place.name in silent else ()
            cases += [_Case(job, servers, token)] if servers else []
    return cases


def _decided(climate: Climate, cases: Sequence[_Case]) -> list[Job]:
    """Write down that the power of these hosts is to be cut, unless that is decided; what is to be asked for it.

    The decision has a token of its own, under which a worker that is late can switch none of them on again.
    """
    decided = [case.job for case in cases if case.job.supply.wanted == OFF]
    others = [case.job for case in cases if case.job.supply.wanted != OFF]
    wanted, supplies = {job.place: OFF for job in others}, {job.supply.host: job.supply for job in others}
    return [*decided, *switching.wish(climate, wanted, supplies, hard=True)]


def _fenced(climate: Climate, jobs: Sequence[Job]) -> frozenset[int]:
    """Those of the hosts whose supplies say that they are off; the others are asked to cut their power."""
    seen = [one for part in executor.ask(climate, jobs) for one in part]
    for one in seen:
        if one.state != OFF:
            log.warning("a failed host is not off yet", host=one.job.place.name, state=one.state, error=one.error)
    return frozenset(one.job.place.host for one in seen if one.state == OFF)


def _evacuated(climate: Climate, case: _Case) -> int:
    # One that is in ERROR was tried before, or is broken by itself: an operator decides about it.
    able = [server for server in case.servers if not server.busy and server.status != "ERROR"]
    asked = [server for server in able if _is_asked(climate, case, server)]
    if asked:
        said = f"{len(asked)} servers of host {case.place.name}, which has failed and is off, are made anew elsewhere"
        body = {"host": case.place.name, "servers": [server.id for server in asked]}
        notice = Notice("host.evacuated", said, host=case.place.host, body=body)
        work(climate, lambda conn, patient: delivery.tell(conn, climate.now(conn), notice))
    return len(asked)


def _is_asked(climate: Climate, case: _Case, server: CloudServer) -> bool:
    """Whether the cloud took it; one server's trouble does not keep the others."""
    try:
        climate.cloud.evacuate_server(server.id, case.place.name, case.token)
    except (CloudError, NotYet, Fenced) as error:
        log.warning("a server cannot be evacuated", server_id=server.id, host=case.place.name, reason=str(error)[:200])
        return False
    return True
