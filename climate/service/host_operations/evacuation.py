"""Evacuation of servers from failed hosts, once it is certain that they do not run any more.

A host is fenced first: the decision is recorded, its power supply is asked to cut the power, and has reported
OFF. A host without power settings is left to an operator, who can check whether it still runs. Only hosts
that the cloud does not hear from count, because a merely disabled host goes on with its servers. A host that
returns afterwards does not start the evacuated servers, because the cloud has them elsewhere.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import PoolCause
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.notifications import Notice
from climate.power import OFF
from climate.service.host_operations.round_settings import HOST_CLAIM_SECONDS
from climate.service.notifications import delivery
from climate.service.power import parallel_requests, switching
from climate.service.power.parallel_requests import Job
from climate.service.transaction import run
from climate.store.hosts import pool_membership, power
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Case:
    """Failed host with its servers, and the fencing token of actions on them."""

    job: Job
    servers: Sequence[CloudServer]
    token: int

    @property
    def place(self) -> HostPlace:
        return self.job.place


def run_round(climate: Climate) -> int:
    """Fence hosts that failed long enough ago, and evacuate those that are off; return the number of servers.

    Does nothing unless CLIMATE_EVACUATE_FAILED_HOSTS is set.
    """
    if not climate.settings.evacuate_failed_hosts:
        return 0
    jobs = run(climate, _claimed, climate)
    try:
        cases = _with_servers(climate, jobs) if jobs else []
        fenced = _fenced(climate, _decided(climate, cases))
        return sum(_evacuated(climate, case) for case in cases if case.place.host in fenced)
    finally:
        if jobs:
            run(climate, pool_membership.release_claims, [job.place.host for job, _ in jobs])


def _claimed(conn: Connection, climate: Climate) -> list[tuple[Job, int]]:
    """Claim the hosts to fence; return those that no other round has, each with a fencing token."""
    now = climate.now(conn)
    jobs = _to_fence(conn, now - timedelta(seconds=climate.settings.evacuate_after))
    if not jobs:
        return []
    mine = pool_membership.claim(conn, [job.place.host for job in jobs], now, HOST_CLAIM_SECONDS)
    own = [job for job in jobs if job.place.host in mine]
    return list(zip(own, event_claims.tokens(conn, len(own)), strict=True)) if own else []


def _to_fence(conn: Connection, before: datetime) -> list[Job]:
    """Return the hosts that failed before a time, without those being switched on, which are about to return."""
    failed = [place for place in pool_membership.listed(conn, Pool.FAILED) if place.since <= before and _is_down(place)]
    supplies = power.of(conn, [place.host for place in failed])
    jobs = [Job(place, supplies[place.host], OFF, hard=True) for place in failed if place.host in supplies]
    return [job for job in jobs if not switching.is_coming(job.place, job.supply)]


def _is_down(place: HostPlace) -> bool:
    """Return whether the host failed for a cause that its servers may not have survived."""
    return place.cause not in (PoolCause.DECLARED_WELL, PoolCause.NOT_CLEANED)


def _with_servers(climate: Climate, jobs: Sequence[tuple[Job, int]]) -> list[_Case]:
    """Return hosts that the cloud does not hear from and that have servers. Empty hosts are not fenced."""
    cases: list[_Case] = []
    with suppress(CloudError):  # the next round asks again
        silent = climate.cloud.silent_hosts()
        for job, token in jobs:
            servers = climate.cloud.servers_on(job.place.name) if job.place.name in silent else ()
            cases += [_Case(job, servers, token)] if servers else []
    return cases


def _decided(climate: Climate, cases: Sequence[_Case]) -> list[Job]:
    """Record the decision to cut the power of these hosts; return the jobs for their power supplies.

    The decision has its own fencing token, under which a late worker can switch none of them on again.
    """
    decided = [case.job for case in cases if case.job.supply.wanted == OFF]
    others = [case.job for case in cases if case.job.supply.wanted != OFF]
    wanted, supplies = {job.place: OFF for job in others}, {job.supply.host: job.supply for job in others}
    return [*decided, *switching.wish(climate, wanted, supplies, hard=True)]


def _fenced(climate: Climate, jobs: Sequence[Job]) -> frozenset[int]:
    """Cut the power of the hosts; return those whose power supplies report OFF."""
    seen = [one for part in parallel_requests.run_jobs(climate, jobs) for one in part]
    for one in seen:
        if one.state != OFF:
            log.warning("failed host not fenced yet", host=one.job.place.name, state=one.state, error=one.error)
    return frozenset(one.job.place.host for one in seen if one.state == OFF)


def _evacuated(climate: Climate, case: _Case) -> int:
    # A server in ERROR was tried before, or is broken by itself: an operator decides about it.
    able = [server for server in case.servers if not server.busy and server.status != "ERROR"]
    asked = [server for server in able if _request_evacuation(climate, case, server)]
    if asked:
        said = (
            f"{len(asked)} servers of host {case.place.name}, which has failed and is off, are evacuated to other hosts"
        )
        body = {"host": case.place.name, "servers": [server.id for server in asked]}
        notice = Notice("host.evacuated", said, host=case.place.host, body=body)
        run(climate, delivery.notify_now, climate, notice)
    return len(asked)


def _request_evacuation(climate: Climate, case: _Case, server: CloudServer) -> bool:
    """Return whether the cloud accepted the request. An error does not stop the other servers."""
    try:
        climate.cloud.evacuate_server(server.id, case.place.name, case.token)
    except (CloudError, NotYet, Fenced) as error:
        log.warning("server evacuation refused", server_id=server.id, host=case.place.name, reason=str(error)[:200])
        return False
    return True
