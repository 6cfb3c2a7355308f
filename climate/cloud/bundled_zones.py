"""Child zones over the registry and the client of the bundled cloud."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from climate.cloud import CloudError
from climate.cloud.children import ZONE, Child
from climate.cloud.zones import ZoneAnswer, ZoneRequest
from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.store.zones import child_zones
from climate.compute.zones import registry
from climate.compute.zones.client_interface import ROLE_HEADER, ChildAnswer, ChildError, ChildRequest
from climate.compute.zones.models import FROM_USER, ChildZone, ZoneChain
from climate.database.connections import reading

NOT_REGISTERED = ZoneAnswer(404)
"""Answer for a child that was removed; parts of leases there are given up."""


@dataclass(frozen=True)
class BundledZones:
    """Children of the registry."""

    compute: Compute
    chain: ZoneChain = FROM_USER
    """Zone chain of the current request."""

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "BundledZones":
        return replace(self, chain=ZoneChain(chain, seconds))

    def active(self) -> Sequence[Child]:
        """Return the children that answer polls and have not just missed a deadline."""
        return self._children(are_asked=True)

    def silent(self) -> Sequence[Child]:
        """Return the children that do not answer polls, or have just missed a deadline."""
        return self._children(are_asked=False)

    def send_all(self, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer | CloudError]:
        """Send all at once. An unreadable password gives an error; a removed child gives an answer without content."""
        known = {zone.id: zone for zone in registry.listed(self.compute)} if requests else {}
        opened = [self._opened(known.get(request.zone_id), request) for request in requests]
        calls = [call for call in opened if isinstance(call, tuple)]
        client = self.compute.zones.client
        answers = iter(client.send_all(calls) if client else ())
        return [_outcome(next(answers)) if isinstance(call, tuple) else call for call in opened]

    def _children(self, *, are_asked: bool) -> Sequence[Child]:
        if self.compute.zones.client is None:
            return ()
        with reading(self.compute.engine) as conn:
            now = self.compute.now(conn)
            result = child_zones.listed(conn)
        return [Child(ZONE, zone.id, zone.name or str(zone.id)) for zone in result if zone.is_asked(now) == are_asked]

    def _opened(
        self, zone: ChildZone | None, request: ZoneRequest
    ) -> tuple[ChildZone, ChildRequest] | ZoneAnswer | CloudError:
        if zone is None:
            return NOT_REGISTERED
        if self.compute.zones.client is None:
            return CloudError("this zone has no client for child zones")
        headers = {ROLE_HEADER: request.role, **({"Idempotency-Key": request.key} if request.key else {})}
        call = ChildRequest(
            request.method, request.path, request.body, request.query, headers, request.service, self.chain
        )
        try:
            return registry.opened(self.compute, zone), call
        except ComputeError as error:
            return CloudError(str(error))


def _outcome(answer: ChildAnswer | ChildError) -> ZoneAnswer | CloudError:
    return CloudError(str(answer)) if isinstance(answer, ChildError) else ZoneAnswer(answer.status, answer.body)
