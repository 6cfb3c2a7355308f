"""Room that is granted on shared nodes: who gets it, how much of it, and that no slot is given twice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, text

from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, NoValidHost, QuotaExceeded, StaleToken
from climate.compute.models.flavor import RESERVATION, Flavor
from climate.compute.models.request import Spec
from climate.compute.models.server import ACTIVE, ERROR, RESIZE, SHELVED_OFFLOADED
from climate.compute.network import reserved_floating_ips
from climate.compute.placement import server_groups
from climate.compute.projects import flavors
from climate.compute.reservations import pools, shared_capacity
from climate.compute.reservations.shared_capacity import Grant
from climate.compute.scheduler.filters import reservation
from climate.compute.servers import actions, create, resize, unshelve
from climate.compute.store.projects import quotas
from tests.compute.cloud_factory import HALF, TINY, Place, request

POOL = "6a0ad3a4-6a2c-4c5b-9a39-3a0f9c2f0001"
GROUP = "6a0ad3a4-6a2c-4c5b-9a39-3a0f9c2f0002"
NODES = ["n1", "n2", "n3", "n4"]


def grant(here: Place, slots: dict[str, int], token: int = 1, **more: Any) -> Flavor:
    """Its flavor."""
    for name in slots:
        pools.enrol(here.compute, name, 1)
    made = Grant(
        **{"pool": POOL, "project_id": "demo", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "slots": slots} | more
    )
    shared_capacity.grant(here.compute, made, token)
    found = flavors.find(here.compute, made.pool, made.project_id)
    assert found is not None
    return found


def states(servers: Any) -> list[str]:
    return sorted(server.status for server in servers)


def test_as_many_servers_find_room_on_each_node_as_there_are_slots(here: Place) -> None:
    flavor = grant(here, {"n1": 2, "n2": 1})
    assert sorted(str(here.boot_one(flavor).node) for _ in range(3)) == ["n1", "n1", "n2"]
    refused = here.boot(flavor)[0]
    assert refused.status == ERROR
    assert f"Of the 3 slots of the reservation {POOL}, 3 are in use." in str(refused.fault)
    assert "'ReservationFilter'" in str(refused.fault)
    assert here.boot_one().node in {"n3", "n4"}, "ordinary servers stay off"


def test_a_build_of_several_is_counted_server_by_server(here: Place) -> None:
    flavor = grant(here, {"n1": 2, "n2": 3})
    assert states(here.boot(flavor, count=6, least=6)) == [ERROR] * 6
    made = here.boot(flavor, count=6, least=4)
    assert sorted(str(server.node) for server in made) == ["n1", "n1", "n2", "n2", "n2"]


@pytest.mark.parametrize("forced", ["nova::n1", "nova:compute-1"])
def test_nobody_is_forced_into_a_slot_that_there_is_not(here: Place, forced: str) -> None:
    flavor = grant(here, {"n1": 1})
    assert here.boot(flavor, count=2, least=2, zone=forced, admin=True)[0].status == ERROR
    assert here.boot_one(flavor, zone=forced, admin=True).node == "n1"
    assert here.boot(flavor, zone=forced, admin=True)[0].status == ERROR


def test_the_flavor_is_for_its_project_alone(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    assert (flavor.id, flavor.name, flavor.projects, flavor.is_public) == (
        POOL,
        f"reservation:{POOL}",
        ("demo",),
        False,
    )
    assert flavor.extra_specs == {
        RESERVATION: POOL,
        "resources:CUSTOM_RESERVATION_6A0AD3A4_6A2C_4C5B_9A39_3A0F9C2F0001": "1",
    }
    assert flavors.find(here.compute, POOL, "other") is None
    refused = here.boot(flavor, project_id="other")[0]
    assert "another project's" in str(refused.fault)


def test_a_flavor_that_only_says_so_is_of_no_use(here: Place) -> None:
    """Whoever makes flavors may name a reservation that there is not; of one that there is, slots are counted."""
    grant(here, {"n1": 1})
    fake = replace(TINY, id="f", name="f", extra_specs={RESERVATION: "nothing"})
    assert here.boot(fake)[0].status == ERROR
    same = replace(TINY, id="g", name="g", extra_specs={RESERVATION: POOL})
    assert here.boot_one(same).node == "n1"
    assert here.boot(same)[0].status == ERROR


def test_the_last_slot_is_won_by_one_of_many(here: Place) -> None:
    flavor = grant(here, {"n1": 2, "n2": 1})

    def one(_: int) -> Any:
        return here.boot(flavor, networks=())[0]

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(one, range(16)))
    placed = [server.node for server in made if server.status != ERROR]
    assert sorted(str(node) for node in placed) == ["n1", "n1", "n2"]
    told = [str(server.fault) for server in made if server.status == ERROR]
    assert all("3 are in use" in fault for fault in told)
    assert here.drift() == []


def test_a_slot_that_was_taken_since_it_was_chosen_is_not_taken_again(here: Place) -> None:
    """A shelved server comes back between the choice and the lock: who booted chooses anew, and is told."""
    flavor = grant(here, {"n1": 1})
    rival = here.boot_one(flavor)
    actions.shelve(here.compute, rival.id)
    here.settle()
    chosen = here.compute.schedule
    tries: list[str] = []

    def schedule(*args: Any) -> Any:
        plan = chosen(*args)
        tries.append(plan.picks[0].node)
        if len(tries) == 1:
            unshelve.unshelve(here.compute, rival.id)
        return plan

    late = create.boot(replace(here.compute, schedule=schedule), request(flavor, networks=()))[0]
    assert tries == ["n1"]
    assert here.look(rival.id).node == "n1"
    assert "1 are in use" in str(late.fault)


def test_a_slot_is_free_again_when_its_server_goes(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    first = here.boot_one(flavor)
    assert here.boot(flavor)[0].status == ERROR
    actions.request_task(here.compute, first.id, "deleting")
    here.settle()
    assert here.boot_one(flavor).node == "n1"


def test_grants_share_a_node_and_do_not_count_each_others_servers(here: Place) -> None:
    first, second = grant(here, {"n1": 1}), grant(here, {"n1": 2}, pool=str(uuid4()))
    made = [here.boot_one(flavor) for flavor in (second, first, second)]
    assert [server.node for server in made] == ["n1"] * 3
    assert states(here.boot(flavor)[0] for flavor in (first, second)) == [ERROR, ERROR]
    assert [server.id for server in pools.servers_in(here.compute, POOL)][:1] == [made[1].id]


def test_slots_change_while_servers_run(here: Place) -> None:
    flavor = grant(here, {"n1": 2})
    here.boot_one(flavor)
    grant(here, {"n1": 1, "n2": 1}, 2)
    assert here.boot_one(flavor).node == "n2"
    assert here.boot(flavor)[0].status == ERROR
    grant(here, {"n2": 2}, 3)
    assert here.boot_one(flavor).node == "n2"
    assert here.boot(flavor)[0].status == ERROR
    grant(here, {"n2": 5}, 4, disk_gb=7)
    found = flavors.find(here.compute, POOL, "demo")
    assert found is not None
    assert found.disk_gb == 7


def test_only_nodes_of_the_reservation_pool_have_slots(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    for name, error in (("n2", Busy), ("n9", NotFound)):
        with pytest.raises(error):
            shared_capacity.grant(here.compute, Grant(POOL, "demo", 1, 1, 1, {"n1": 1, name: 1}), 2)
    pools.place(here.compute, "n1", "maintenance", 3)
    assert here.boot(flavor)[0].status == ERROR
    pools.place(here.compute, "n1", "freepool", 4)
    assert here.boot_one(flavor).node == "n1"


def test_a_node_comes_back_to_the_reservation_pool_with_the_servers_in_its_slots_alone(here: Place) -> None:
    here.boot_one(grant(here, {"n1": 1}))
    pools.place(here.compute, "n1", "failed", 2)
    pools.place(here.compute, "n1", "freepool", 3)
    pools.place(here.compute, "n1", "failed", 4)
    grant(here, {"n2": 1}, 5)
    with pytest.raises(Busy):
        pools.place(here.compute, "n1", "freepool", 6)


def test_a_node_with_servers_in_slots_is_not_allocated(here: Place) -> None:
    server = here.boot_one(grant(here, {"n1": 1}))
    with pytest.raises(Busy):
        pools.lend(here.compute, "r1", "demo", ["n1"], 2)
    actions.request_task(here.compute, server.id, "deleting")
    here.settle()
    pools.lend(here.compute, "r1", "demo", ["n1"], 2)


def test_what_is_closed_takes_no_more_servers_until_it_is_granted_again(here: Place) -> None:
    flavor = grant(here, {"n1": 2})
    here.boot_one(flavor)
    for _ in range(2):
        shared_capacity.close(here.compute, POOL, 2)
    assert "is over or ending" in str(here.boot(flavor)[0].fault)
    grant(here, {"n1": 2}, 3)
    assert here.boot_one(flavor).node == "n1"


def test_it_is_revoked_when_no_server_uses_it(here: Place) -> None:
    flavor = grant(here, {"n1": 1}, group_id=GROUP, policy="affinity")
    served = [here.boot_one(flavor, hints={"group": GROUP}), here.boot(flavor)[0]]
    assert [server.status for server in served] == [ACTIVE, ERROR]
    with pytest.raises(Busy, match="2 servers"):
        shared_capacity.revoke(here.compute, POOL, 2)
    for server in served:
        actions.request_task(here.compute, server.id, "deleting")
        here.settle()
    for _ in range(2):
        shared_capacity.revoke(here.compute, POOL, 2)
    assert flavors.find(here.compute, POOL, "demo") is None
    with pytest.raises(NotFound):
        server_groups.get(here.compute, GROUP)
    assert here.count("compute_grant_slots") == 0
    assert here.boot(flavor)[0].status == ERROR


def test_who_was_overtaken_is_refused(here: Place) -> None:
    grant(here, {"n1": 1}, 5)
    late: list[Callable[[], None]] = [
        lambda: shared_capacity.grant(here.compute, Grant(POOL, "demo", 1, 512, 1, {"n1": 3}), 4),
        lambda: shared_capacity.close(here.compute, POOL, 4),
        lambda: shared_capacity.revoke(here.compute, POOL, 4),
    ]
    for verb in late:
        with pytest.raises(StaleToken):
            verb()
    shared_capacity.revoke(here.compute, POOL, 6)
    with pytest.raises(StaleToken):
        grant(here, {"n1": 1}, 5)
    pools.place(here.compute, "n2", "freepool", 9)
    with pytest.raises(StaleToken):
        grant(here, {"n2": 1}, 8, pool=str(uuid4()))
    grant(here, {"n1": 1}, 7)


def test_what_never_was_granted_cannot_be_under_a_lower_token(here: Place) -> None:
    shared_capacity.revoke(here.compute, POOL, 6)
    for verb in (lambda: grant(here, {"n1": 1}, 5), lambda: shared_capacity.close(here.compute, POOL, 5)):
        with pytest.raises(StaleToken):
            verb()
    shared_capacity.close(here.compute, "neither", 1)


def test_its_group_is_kept_by_the_policy_and_goes_with_it(here: Place) -> None:
    flavor = grant(here, {"n1": 2, "n2": 2}, group_id=GROUP, policy="anti-affinity")
    assert flavor.extra_specs["affinity_id"] == GROUP
    hint = {"group": GROUP}
    assert sorted(str(here.boot_one(flavor, hints=hint).node) for _ in range(2)) == ["n1", "n2"]
    assert here.boot(flavor, hints=hint)[0].status == ERROR
    with pytest.raises(Conflict, match=POOL):
        server_groups.delete(here.compute, GROUP, "demo")


def test_the_projects_limits_of_groups_are_not_those_of_a_reservations_group(here: Place) -> None:
    limits = {"server_groups": 1, "server_group_members": 2}
    with here.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", limits)
    flavor = grant(here, {"n1": 4}, group_id=GROUP, policy="affinity")
    made = here.boot(flavor, count=3, least=3, hints={"group": GROUP})
    assert [server.node for server in made] == ["n1"] * 3
    assert here.boot_one(flavor, hints={"group": GROUP}).node == "n1"
    own = server_groups.create(here.compute, project_id="demo", user_id="u", name="own", policy="affinity")
    with pytest.raises(QuotaExceeded):
        server_groups.create(here.compute, project_id="demo", user_id="u", name="another", policy="affinity")
    with pytest.raises(QuotaExceeded, match="too many servers in group"):
        here.boot(count=3, least=3, hints={"group": own.id})


def test_sizes_of_reservations_stay(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    inside, outside = here.boot_one(flavor), here.boot_one()
    for server, wanted in ((inside, HALF), (outside, flavor)):
        with pytest.raises(BadRequest, match=f"reservation:{POOL}"):
            resize.resize(here.compute, server.id, wanted)
        assert here.look(server.id).task != RESIZE
    with pytest.raises(BadRequest):
        create.reserve(here.compute, request(flavor), str(uuid4()))


def test_the_hint_names_the_same_reservation_as_the_flavor_or_none(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    with pytest.raises(BadRequest, match="names another"):
        here.boot(flavor, hints={"reservation": "r1"})
    with pytest.raises(BadRequest, match=f"with its flavor, reservation:{POOL}"):
        here.boot(hints={"reservation": POOL})
    assert here.boot_one(flavor, hints={"reservation": POOL}).node == "n1"
    assert here.count("compute_servers") == 1


def test_a_server_that_cannot_be_created_is_moved_within_the_slots(here: Place) -> None:
    flavor = grant(here, {"n1": 1, "n2": 1})
    here.driver.broken = {"n1"}
    assert here.boot_one(flavor).node == "n2"
    second = here.boot_one(flavor)
    assert second.status == ERROR
    assert "2 slots" in str(second.fault)
    assert here.drift() == []


def test_a_shelved_server_comes_back_into_a_free_slot_alone(here: Place) -> None:
    flavor = grant(here, {"n1": 1})
    server = here.boot_one(flavor)
    actions.shelve(here.compute, server.id)
    here.settle()
    assert here.look(server.id).status == SHELVED_OFFLOADED
    other = here.boot_one(flavor)
    assert other.node == "n1"
    with pytest.raises(NoValidHost):
        unshelve.unshelve(here.compute, server.id)
    actions.request_task(here.compute, other.id, "deleting")
    here.settle()
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    assert here.look(server.id).node == "n1"
    assert here.boot(flavor)[0].status == ERROR


def test_granting_and_booting_are_few_statements_however_many_hosts(here: Place) -> None:
    for name in NODES:
        pools.enrol(here.compute, name, 1)
    seen: list[str] = []

    @event.listens_for(here.compute.engine, "before_cursor_execute")
    def executes(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    def counted(act: Callable[[], Any]) -> int:
        seen.clear()
        act()
        return len(seen)

    def granted(slots: dict[str, int]) -> int:
        made = Grant(str(uuid4()), "demo", 1, 512, 1, slots)
        return counted(lambda: shared_capacity.grant(here.compute, made, 1))

    assert granted({"n1": 1}) == granted(dict.fromkeys(NODES, 9)) <= 5
    ordinary = Grant(POOL, "demo", 1, 512, 1, dict.fromkeys(NODES, 9))
    shared_capacity.grant(here.compute, ordinary, 1)
    pools.withdraw(here.compute, "n4", 1)
    here.boot()
    more = counted(lambda: here.boot(ordinary.flavor, count=9)) - counted(lambda: here.boot(count=9))
    assert more == 2


def test_a_request_with_an_ordinary_flavor_knows_nothing_of_slots() -> None:
    assert not reservation.RESERVATION.changes(Spec("demo", 1, 1, 1))


def test_who_is_late_by_days_is_refused_as_well(here: Place) -> None:
    grant(here, {"n1": 1}, token=5)
    shared_capacity.revoke(here.compute, POOL, 6)
    reserved_floating_ips.take_back(here.compute, POOL, 6)
    with here.compute.engine.begin() as conn:
        for table in ("compute_grants", "compute_address_loans"):
            conn.execute(text(f"UPDATE {table} SET updated_at = updated_at - interval '40 days'"))
    shared_capacity.revoke(here.compute, "another", 7)
    reserved_floating_ips.take_back(here.compute, "another", 7)
    with pytest.raises(StaleToken):
        grant(here, {"n1": 1}, token=5)
    with pytest.raises(StaleToken):
        reserved_floating_ips.take_back(here.compute, POOL, 5)
