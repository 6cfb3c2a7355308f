"""Trust in compute services, as an attestation service reports it over HTTP.

The service is called before the transaction of a request begins, and its answer is cached: no lock is held during the
call.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy import Engine

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.store.nodes import services
from climate.database.connections import reading
from climate.outbound import http_client
from climate.outbound.http_client import DeliveryError, PostRequest, Receipt

log = logging.getLogger(__name__)

SPEC = "trust:trusted_host"
"""The extra spec by which a flavor requires a trust level."""

UNKNOWN = "unknown"
LEVELS = ("trusted", "untrusted", UNKNOWN)

BATCH = 200
"""Services in one request, so that the answer stays below the size limit."""


def required_level(flavor: Flavor | None) -> str | None:
    """Return the trust level that a flavor requires, None for any; BadRequest for an unknown level."""
    level = None if flavor is None else flavor.extra_specs.get(SPEC)
    if level is not None and level not in LEVELS:
        raise BadRequest(f"The flavor's {SPEC} {level[:40]!r} must be one of {', '.join(LEVELS)}.")
    return level


@dataclass(frozen=True, slots=True)
class AttestationService:
    """The endpoint of the service: POST `url`/PollHosts with {"hosts": [name, …]}."""

    url: str
    blob: str = field(default="", repr=False)
    """Sent as x-auth-blob."""
    seconds: float = 5.0
    """Timeout of a request in seconds."""

    def levels(self, hosts: Sequence[str]) -> Mapping[str, str]:
        """Return the levels of the hosts that the service knows; none for a batch that failed."""
        batches = [hosts[start : start + BATCH] for start in range(0, len(hosts), BATCH)]
        result: dict[str, str] = {}
        for answer in http_client.post_all([self._parcel(batch) for batch in batches]) if batches else ():
            result |= _read(answer)
        return {host: result[host] for host in hosts if host in result}

    def _parcel(self, hosts: Sequence[str]) -> PostRequest:
        return PostRequest(
            url=f"{self.url.rstrip('/')}/PollHosts",
            body=json.dumps({"hosts": list(hosts)}).encode(),
            headers={"x-auth-blob": self.blob, "Accept": "application/json"},
            seconds=self.seconds,
            private=True,
        )


def _read(answer: Receipt | DeliveryError) -> Mapping[str, str]:
    """Return the levels in {"hosts": [{"host_name", "trust_lvl"}, …]}."""
    if isinstance(answer, DeliveryError):
        log.warning("the attestation service does not answer: %s", answer)
        return {}
    if answer.status not in (200, 201, 202, 204):
        log.warning("the attestation service answers HTTP %d", answer.status)
        return {}
    try:
        return dict(_levels(json.loads(answer.body)["hosts"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        log.warning("the answer of the attestation service is invalid")
        return {}


def _levels(hosts: Iterable[Mapping[str, object]]) -> Iterable[tuple[str, str]]:
    for host in hosts:
        level = str(host["trust_lvl"]).lower()
        yield str(host["host_name"]), level if level in LEVELS else UNKNOWN


@dataclass(slots=True)
class Trust:
    """The levels of the compute services, each cached for `keep_seconds`."""

    service: AttestationService | None = None
    keep_seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Host -> its level, and the expiry of the entry."""
    _lock: Lock = field(default_factory=Lock)

    def levels(self, engine: Engine) -> Mapping[str, str]:
        """Return the levels of the compute services, without those that the attestation service does not report."""
        if self.service is None:
            return {}
        with reading(engine) as conn:
            hosts = services.names(conn)
        # One thread asks at a time; the waiting threads then find the answer in the cache.
        with self._lock:
            now = self.clock()
            stale = [host for host in hosts if self._kept.get(host, ("", now))[1] <= now]
            for host, level in self.service.levels(stale).items():
                self._kept[host] = level, now + self.keep_seconds
            return {host: self._kept[host][0] for host in hosts if self._kept.get(host, ("", now))[1] > now}
