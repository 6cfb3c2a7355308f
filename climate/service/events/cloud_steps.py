"""Cloud interface for plugins in a worker, which records every change before it is requested.

A repeated run of an event skips the steps that its last run has completed. Nothing is requested once the
claim on the event is lost.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import ParamSpec
from uuid import UUID

from sqlalchemy import Connection

from climate.cloud import (
    FREEPOOL,
    Capacity,
    Cloud,
    CloudFlavor,
    CloudHost,
    CloudServer,
    ExternalNetwork,
    Fenced,
    LeasePool,
)
from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from climate.context import Climate
from climate.database.connections import Insert, Query, alone
from climate.store.leases import cloud_actions

P = ParamSpec("P")


@dataclass
class Steps:
    """Cloud interface for one run of one event."""

    climate: Climate
    event_id: UUID
    due_at: datetime
    token: int
    is_lost: Callable[[], bool]
    done: list[str] = field(default_factory=list)
    """Steps that are done but not yet recorded so: that happens with the next intent, or with the result."""

    @property
    def _cloud(self) -> Cloud:
        return self.climate.cloud

    def _once(self, step: str, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Carry out a step that this event has not completed."""
        if self._plan(step) != "DONE":
            act(*args, **kwargs)
            self.done.append(step)

    def _again(self, step: str, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Carry out a step even if this event has completed it."""
        self._plan(step)
        act(*args, **kwargs)
        self.done.append(step)

    def _plan(self, step: str) -> str:
        """Record the intent of a step and return its state. Raise Fenced if the claim was lost."""
        if self.is_lost():
            raise Fenced(f"the claim on event {self.event_id} was lost")
        with alone(self.climate.engine) as conn:
            state = cloud_actions.record_intent(conn, self.event_id, self.due_at, step, self.token, self.done)
        if state is None:
            raise Fenced(f"event {self.event_id} belongs to another worker")
        self.done.clear()
        return state

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        return self._cloud.find_hosts(name)

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        return self._cloud.ordinary_hosts()

    def host_query(self, conn: Connection) -> Query | None:
        return None

    def enrol(self, host: str, token: int) -> None:
        self._once(f"enrol:{host}", self._cloud.enrol, host, token)

    def withdraw(self, host: str, token: int) -> None:
        self._once(f"withdraw:{host}", self._cloud.withdraw, host, token)

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        return self._cloud.promise_pool(pool, wanted)

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        return None

    def forget_pool(self, pool: str) -> None:
        self._once(f"forget_pool:{pool}", self._cloud.forget_pool, pool)

    def lease_pools(self) -> Mapping[str, LeasePool]:
        return self._cloud.lease_pools()

    def lend(
        self, pool: str, project_id: str, hosts: Sequence[str], token: int, shared_with: Sequence[str] = ()
    ) -> None:
        step = lending(pool, hosts, shared_with)
        self._once(step, self._cloud.lend, pool, project_id, hosts, token, shared_with)

    def close(self, pool: str, token: int) -> None:
        self._once(f"close:{pool}", self._cloud.close, pool, token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        self._once(taking_back(pool), self._cloud.take_back, pool, hosts, token, to)

    def place(self, host: str, to: str | None, token: int) -> None:
        self._again(f"place:{host}:{to}", self._cloud.place, host, to, token)

    def health(self) -> Mapping[str, str | None]:
        return self._cloud.health()

    def silent_hosts(self) -> frozenset[str]:
        return self._cloud.silent_hosts()

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        return self._cloud.servers_on(host)

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        return self._cloud.find_flavor(flavor_id, project_id)

    def grant(self, capacity: Capacity, token: int) -> None:
        step = f"grant:{capacity.pool}:{_short(sorted(capacity.slots.items()))}{_shared(capacity.shared_with)}"
        self._once(step, self._cloud.grant, capacity, token)

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        self._once(f"revoke:{pool}", self._cloud.revoke, pool, hosts, token)

    def pools(self) -> Mapping[str, frozenset[str]]:
        return self._cloud.pools()

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        return self._cloud.servers_in(pool)

    def server(self, server_id: str) -> CloudServer | None:
        return self._cloud.server(server_id)

    def sleeping(self) -> Sequence[CloudServer]:
        return self._cloud.sleeping()

    def busy_hosts(self, hosts: Collection[str]) -> frozenset[str]:
        return self._cloud.busy_hosts(hosts)

    def wake(self, server_id: str, token: int) -> None:
        self._again(f"wake:{server_id}", self._cloud.wake, server_id, token)

    def suspend(self, server_id: str, token: int) -> None:
        self._once(f"suspend:{server_id}", self._cloud.suspend, server_id, token)

    def find_external(self, network: str) -> ExternalNetwork | None:
        return self._cloud.find_external(network)

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        step = f"lend_address:{pool}:{address}"
        self._once(step, self._cloud.lend_address, pool, project_id, network_id, address, token)

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        step = f"take_back_addresses:{pool}"
        self._once(step, self._cloud.take_back_addresses, pool, addresses, token)

    def find_storage(self, backend: str) -> CloudStorage | None:
        return self._cloud.find_storage(backend)

    def ensure_volume(self, order: VolumeOrder, token: int) -> None:
        # A volume that grows is another step than the one that created it.
        step = f"ensure_volume:{order.pool}:{order.number}:{order.size_gb}"
        self._once(step, self._cloud.ensure_volume, order, token)

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        self._once(f"drop_volumes:{pool}", self._cloud.drop_volumes, pool, token, keep=keep)

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        return self._cloud.volumes(pools)

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        # After an extension the lease reaches before_end_lease again, and needs an image of the state at that time.
        occasion = occasion or f"{self.event_id} {self.due_at.isoformat()}"
        self._once(f"snapshot:{server_id}", self._cloud.snapshot, server_id, image, token, occasion)

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        # Requested as long as the server is seen on the host, like its deletion.
        step = f"move_server:{server_id}:{host}"
        self._again(step, self._cloud.move_server, server_id, host, token, alone=alone)

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        step = f"evacuate_server:{server_id}:{host}"
        self._again(step, self._cloud.evacuate_server, server_id, host, token)

    def delete_server(self, server_id: str, token: int) -> None:
        # Requested as long as the server is seen: "done" only means that the cloud has accepted the request.
        self._again(f"delete_server:{server_id}", self._cloud.delete_server, server_id, token)


def lending(pool: str, hosts: Sequence[str], shared_with: Sequence[str] = ()) -> str:
    """Return the step of lending hosts. A host left out before is ready at the next try: that is another step.

    So are other projects with which the lease is shared.
    """
    return f"lend:{pool}:{_short(sorted(hosts))}{_shared(shared_with)}"


def _shared(projects: Sequence[str]) -> str:
    return f":{_short(sorted(projects))}" if projects else ""


def taking_back(pool: str) -> str:
    """Return the step of taking back the hosts of a pool."""
    return f"take_back:{pool}"


def _short(what: object) -> str:
    """Return a short digest of a value, which is stable and of constant length."""
    return sha256(repr(what).encode()).hexdigest()[:16]
