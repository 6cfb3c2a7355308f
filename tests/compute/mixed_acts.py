"""The acts of `mixed_load`: what users, workers, services and admins of the bundled cloud do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from random import Random
from typing import Any
from uuid import uuid4

from sqlalchemy import text

from climate.compute import server_operations
from climate.compute.context import Compute
from climate.compute.errors import NotFound
from climate.compute.migrations import cold_migration, evacuation
from climate.compute.models.aggregate import ORDINARY, POOL, ZONE
from climate.compute.models.node import FREEPOOL, OWNER
from climate.compute.models.server import ACTIVE, DELETE, REVERT, SHELVED_OFFLOADED, SHUTOFF, START, STOP, VERIFY_RESIZE
from climate.compute.network import floating_ips, networks
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.service import claiming
from climate.compute.nodes import aggregates, maintenance, services
from climate.compute.placement import server_groups
from climate.compute.placement.server_groups import ANTI_AFFINITY, SOFT_AFFINITY
from climate.compute.projects import quotas
from climate.compute.reservations import pools, shared_capacity
from climate.compute.reservations.shared_capacity import Grant
from climate.compute.servers import actions, create, properties, resize, sync_states, unshelve
from climate.compute.servers.tasks import task_worker
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import request
from tests.compute.mixed_load import FLAVORS, NODES, OUTSIDE, POOLS, PROJECTS, Act, Load, by

RANGES = tuple(IPv4Network(f"10.{number}.0.0/28") for number in range(30, 34))
MOST_SERVERS = 24
GROUP = "33333333-0000-4000-8000-000000000003"


def _boot(load: Load, chance: Random) -> None:
    if len(load.servers()) > MOST_SERVERS:
        return _delete(load, chance)
    project = chance.choice(PROJECTS)
    hints: dict[str, Any] = {}
    there = server_groups.listed(load.compute, project)
    if there and chance.random() < 0.4:
        hints = {"group": chance.choice(there).id}
    elif chance.random() < 0.2:
        hints = {"reservation": chance.choice(POOLS)}
    count = chance.choice([1, 1, 2, 4])
    wanted = request(chance.choice(FLAVORS), project_id=project, count=count, least=1, hints=hints)
    create.boot(load.compute, wanted)
    return None


def _delete(load: Load, chance: Random) -> None:
    actions.request_task(load.compute, load.some(chance).id, DELETE)


def _stop(load: Load, chance: Random) -> None:
    actions.request_task(load.compute, load.some(chance, ACTIVE).id, STOP)


def _start(load: Load, chance: Random) -> None:
    actions.request_task(load.compute, load.some(chance, SHUTOFF).id, START)


def _resize(load: Load, chance: Random) -> None:
    server = load.some(chance, ACTIVE, SHUTOFF)
    resize.resize(load.compute, server.id, chance.choice(FLAVORS), by=by(server.project_id))


def _confirm(load: Load, chance: Random) -> None:
    resize.confirm(load.compute, load.some(chance, VERIFY_RESIZE).id)


def _revert(load: Load, chance: Random) -> None:
    actions.request_task(load.compute, load.some(chance, VERIFY_RESIZE).id, REVERT)


def _shelve(load: Load, chance: Random) -> None:
    actions.shelve(load.compute, load.some(chance, ACTIVE).id)


def _unshelve(load: Load, chance: Random) -> None:
    unshelve.unshelve(load.compute, load.some(chance, SHELVED_OFFLOADED).id)


def _rename(load: Load, chance: Random) -> None:
    properties.describe(load.compute, load.some(chance).id, {"name": f"s{chance.random()}"}, project_id=None)


def _plug(load: Load, chance: Random) -> None:
    server = load.some(chance, ACTIVE, SHUTOFF)
    with load.engine.connect() as conn:
        there = list(conn.scalars(text("SELECT id::text FROM compute_networks ORDER BY id")))
    server_operations.attach(load.compute, load.who(server), chance.choice(there), None)


def _unplug(load: Load, chance: Random) -> None:
    server = load.some(chance, ACTIVE, SHUTOFF)
    ports = server_operations.interfaces(load.compute, load.who(server))
    if not ports:
        raise NotFound("no interfaces")
    server_operations.detach(load.compute, load.who(server), chance.choice(ports).id)


def _addresses(load: Load, project: str) -> list[str]:
    with load.engine.connect() as conn:
        query = text("SELECT host(address) FROM compute_floating_addresses WHERE project_id = :project")
        return list(conn.scalars(query, {"project": project}))


def _allocate(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        floating_ips.allocate(conn, chance.choice(PROJECTS), load.pool, load.compute.now(conn))


def _associate(load: Load, chance: Random) -> None:
    server = load.some(chance, ACTIVE, SHUTOFF)
    if not (there := _addresses(load, server.project_id)):
        raise NotFound("no floating addresses")
    server_operations.associate(load.compute, load.who(server), chance.choice(there), None)


def _disassociate(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        there = _addresses(load, chance.choice(PROJECTS))
        if not there:
            raise NotFound("no floating addresses")
        found = floating_ips.by_address(conn, chance.choice(there))
        floating_ips.disassociate(conn, found, load.compute.now(conn), load.compute.network_notifier)


def _release(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        there = _addresses(load, chance.choice(PROJECTS))
        if len(there) < 2:
            raise NotFound("few floating addresses")
        found = floating_ips.by_address(conn, chance.choice(there))
        floating_ips.release(conn, found, load.compute.now(conn), load.compute.network_notifier)


def _group(load: Load, chance: Random) -> None:
    project = chance.choice(PROJECTS)
    policy = chance.choice([ANTI_AFFINITY, SOFT_AFFINITY])
    server_groups.create(load.compute, project_id=project, user_id="dora", name="g", policy=policy)


def _drop_group(load: Load, chance: Random) -> None:
    there = server_groups.listed(load.compute)
    if len(there) < 3:
        raise NotFound("few groups")
    server_groups.delete(load.compute, chance.choice(there).id)


def _migrate(load: Load, chance: Random) -> None:
    cold_migration.migrate(load.compute, load.some(chance, ACTIVE, SHUTOFF).id, alone=chance.random() < 0.2)


def _force_down(load: Load, chance: Random) -> None:
    service = chance.choice(services.listed(load.compute))
    maintenance.change(load.compute, service, forced_down=not service.forced_down and chance.random() < 0.4)


def _evacuate(load: Load, chance: Random) -> None:
    """Evacuate a server of a service that is down, or if there is none any server, which is refused."""
    down = {service.host for service in services.listed(load.compute) if not service.up}
    there = [one for one in load.servers() if one.status in (ACTIVE, SHUTOFF) and one.service_host in down]
    server = chance.choice(there) if there else load.some(chance, ACTIVE, SHUTOFF)
    evacuation.evacuate(load.compute, server.id)


def _disable(load: Load, chance: Random) -> None:
    service = chance.choice(services.listed(load.compute))
    maintenance.change(load.compute, service, enabled=not service.enabled or chance.random() < 0.7)


def _maintain(load: Load, chance: Random) -> None:
    where = chance.choice([*NODES, "compute-1", "compute-2"])
    maintenance.maintain(load.compute, where, chance.choice([None, None, "new fans"]))


def _names(chance: Random, most: int = 4) -> list[str]:
    return chance.sample(NODES, chance.randint(1, most))


def _enrol(load: Load, chance: Random) -> None:
    pools.enrol(load.compute, chance.choice(NODES), load.next_token())


def _withdraw(load: Load, chance: Random) -> None:
    pools.withdraw(load.compute, chance.choice(NODES), load.next_token())


def _lend(load: Load, chance: Random) -> None:
    pool, members = chance.choice(POOLS), pools.pools(load.compute)
    there = sorted(members.get(FREEPOOL, frozenset()))
    names = chance.sample(there, min(len(there), chance.randint(1, 3)))
    pools.lend(load.compute, pool, chance.choice(PROJECTS), names, load.next_token())


def _close(load: Load, chance: Random) -> None:
    pools.close(load.compute, chance.choice(POOLS), load.next_token())


def _take_back(load: Load, chance: Random) -> None:
    to = chance.choice([FREEPOOL, None, None])
    pools.take_back(load.compute, chance.choice(POOLS), _names(chance), load.next_token(), to)


def _place(load: Load, chance: Random) -> None:
    to = chance.choice([None, FREEPOOL, "draining", "failed", *POOLS])
    pools.place(load.compute, chance.choice(NODES), to, load.next_token())


def _grant(load: Load, chance: Random) -> None:
    there = sorted(pools.pools(load.compute).get(FREEPOOL, frozenset()))
    if not there:
        raise NotFound("the reservation pool is empty")
    slots = {name: chance.randint(1, 3) for name in chance.sample(there, chance.randint(1, len(there)))}
    pool = chance.choice(("44444444-0000-4000-8000-000000000004", "55555555-0000-4000-8000-000000000005"))
    policy = chance.choice([None, ANTI_AFFINITY])
    group = str(uuid4()) if policy is None else GROUP[:-1] + pool[0]
    shared_capacity.grant(load.compute, Grant(pool, "demo", 1, 512, 1, slots, group, policy), load.next_token())


def _revoke(load: Load, chance: Random) -> None:
    pool = chance.choice(("44444444-0000-4000-8000-000000000004", "55555555-0000-4000-8000-000000000005"))
    shared_capacity.revoke(load.compute, pool, load.next_token())


def _aggregate(load: Load, chance: Random) -> None:
    aggregates.create(load.compute, f"a{chance.randint(1, 4)}", chance.choice([None, "z1"]))


def _some_aggregate(load: Load, chance: Random) -> int:
    there = [one for one in aggregates.listed(load.compute) if one.fence == 0]
    return chance.choice(there).id


def _fill(load: Load, chance: Random) -> None:
    host = chance.choice([*NODES, "compute-1", "compute-3"])
    aggregates.add_host(load.compute, _some_aggregate(load, chance), host)


def _empty(load: Load, chance: Random) -> None:
    there = [one for one in aggregates.listed(load.compute) if one.fence == 0 and one.nodes]
    if not there:
        raise NotFound("no aggregate has hosts")
    found = chance.choice(there)
    aggregates.remove_host(load.compute, found.id, chance.choice(list(found.nodes)))


def _describe_aggregate(load: Load, chance: Random) -> None:
    there = [one for one in aggregates.listed(load.compute) if one.fence == 0 and one.name != FREEPOOL]
    if not there:
        raise NotFound("no aggregates")
    changes = {"rack": str(chance.randint(1, 9))}
    aggregates.set_metadata(load.compute, chance.choice(there).id, changes)


def _own(load: Load, chance: Random) -> None:
    """Make an ordinary aggregate a pool of a project by its metadata."""
    _turn(load, chance, ORDINARY, {OWNER: chance.choice(PROJECTS), ZONE: None})


def _disown(load: Load, chance: Random) -> None:
    """Make a pool of a project an ordinary aggregate."""
    _turn(load, chance, POOL, {OWNER: None})


def _turn(load: Load, chance: Random, kind: str, changes: Mapping[str, str | None]) -> None:
    there = [one for one in aggregates.listed(load.compute) if one.name.startswith("a") and one.kind == kind]
    if not there:
        raise NotFound(f"no aggregate is of the kind {kind}")
    aggregates.set_metadata(load.compute, chance.choice(there).id, changes)


def _rename_aggregate(load: Load, chance: Random) -> None:
    name = chance.choice([f"a{chance.randint(1, 4)}", "draining", "failed"])
    aggregates.update(load.compute, _some_aggregate(load, chance), name)


def _drop_aggregate(load: Load, chance: Random) -> None:
    aggregates.delete(load.compute, _some_aggregate(load, chance))


def _quota(load: Load, chance: Random) -> None:
    limits = {"instances": chance.choice([-1, 30, 50]), "floating_ips": chance.choice([10, 20])}
    quotas.change(load.compute, chance.choice(PROJECTS), limits, force=chance.random() < 0.5)


def _reset_quota(load: Load, chance: Random) -> None:
    quotas.reset(load.compute, chance.choice(PROJECTS))


def _network(load: Load, chance: Random) -> None:
    cidr = chance.choice(RANGES)
    with load.engine.begin() as conn:
        manager = chance.choice(["vlan", "flat"])
        networks.create(conn, NetworkOptions(), CreationRequest(f"net-{cidr.network_address}", cidr), manager)


def _drop_network(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        networks.delete(conn, _some_network(load, chance))


def _some_network(load: Load, chance: Random) -> str:
    with load.engine.connect() as conn:
        there = list(conn.scalars(text("SELECT id::text FROM compute_networks WHERE label LIKE 'net-%'")))
    if not there:
        raise NotFound("no further networks")
    return chance.choice(there)


def _give_network(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        networks.associate(conn, _some_network(load, chance), chance.choice(PROJECTS))


def _take_network(load: Load, chance: Random) -> None:
    with load.engine.begin() as conn:
        networks.disassociate(conn, _some_network(load, chance))


def _fill_outside(load: Load, chance: Random) -> None:
    first = OUTSIDE[chance.randint(1, 20)]
    with load.engine.begin() as conn:
        floating_ips.add(conn, load.pool, first, first + chance.randint(0, 9))


def _empty_outside(load: Load, chance: Random) -> None:
    first = OUTSIDE[chance.randint(1, 20)]
    with load.engine.begin() as conn:
        floating_ips.remove(conn, load.pool, first, first + chance.randint(0, 5))


def _work(load: Load, chance: Random) -> None:
    ring = load.bells.next()
    if ring is None:
        for host, server_id in task_worker.unfinished(load.compute, wait=0, again=0):
            load.bells(host, server_id)
        raise NotFound("nothing is to be done")
    host, server_id = ring
    task_worker.run_task(load.services[host] if host else load.compute, server_id)


def _some_service(load: Load, chance: Random) -> Compute:
    return chance.choice(list(load.services.values()))


def _report(load: Load, chance: Random) -> None:
    """A report of a service whose nodes are told to be of other sizes now and then, and in another order."""
    service = _some_service(load, chance)
    driver = service.driver
    assert isinstance(driver, MemoryDriver)
    specs = [replace(spec, memory_mb=chance.choice([8192, 16384])) for spec in driver.specs]
    driver.specs = chance.sample(specs, len(specs))
    services.refresh(service)


def _audit(load: Load, chance: Random) -> None:
    """Look for drift; now and then there is some, on nodes of several services."""
    if chance.random() < 0.2:
        with load.engine.begin() as conn:
            query = "UPDATE compute_nodes SET used_vcpus = used_vcpus + 1 WHERE name = :name"
            conn.execute(text(query), {"name": chance.choice(NODES)})
    services.audit(_some_service(load, chance))


def _put_right(load: Load, chance: Random) -> None:
    sync_states.reconcile(_some_service(load, chance))


def _claim_network(load: Load, chance: Random) -> None:
    service = _some_service(load, chance)
    claiming.beat(service)
    claiming.claim(service)


USERS: Sequence[Act] = (
    *(_boot, _boot, _boot, _delete, _delete, _stop, _start, _resize, _confirm, _revert, _shelve, _unshelve, _rename),
    *(_plug, _plug, _unplug, _allocate, _associate, _associate, _disassociate, _release, _group, _drop_group),
)
MOVERS: Sequence[Act] = (_migrate, _migrate, _confirm, _revert, _evacuate, _force_down)
LENDERS: Sequence[Act] = (
    *(_enrol, _enrol, _withdraw, _lend, _lend, _close, _take_back, _take_back, _place, _grant, _revoke),
)
ADMINS: Sequence[Act] = (
    *(_disable, _maintain, _aggregate, _fill, _fill, _empty, _describe_aggregate, _drop_aggregate, _quota),
    *(_own, _own, _disown, _rename_aggregate),
    *(_reset_quota, _network, _drop_network, _give_network, _take_network, _fill_outside, _empty_outside),
)
WORKERS: Sequence[Act] = (_work,)
ROUNDS: Sequence[Act] = (_report, _audit, _put_right, _claim_network)
ACTORS: Sequence[tuple[Sequence[Act], int]] = (
    (USERS, 6),
    (MOVERS, 2),
    (LENDERS, 2),
    (ADMINS, 3),
    (WORKERS, 4),
    (ROUNDS, 2),
)
