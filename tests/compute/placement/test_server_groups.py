"""Server groups: kept apart or together, also when all members are asked for in the same moment."""

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.errors import BadRequest, NotFound, QuotaExceeded
from climate.compute.models.request import Spec
from climate.compute.models.server import ACTIVE, BUILD, ERROR
from climate.compute.placement import server_groups
from climate.compute.placement.server_groups import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.scheduler.weighers import RAM
from climate.compute.servers.tasks import task_worker
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import HALF, TINY, Place, node, place
from tests.lock_waits import await_blocked


def group(here: Place, policy: str, project_id: str = "demo") -> str:
    return server_groups.create(here.compute, project_id=project_id, user_id="dora", name="g", policy=policy).id


def boot(here: Place, group_id: str, **wanted: object) -> str | None:
    """The node of a new member; None when there is none."""
    return here.boot(wanted.pop("flavor", TINY), hints={"group": group_id}, networks=(), **wanted)[0].node  # type: ignore[arg-type]


def test_a_group_is_created_shown_listed_and_dropped(here: Place) -> None:
    made = server_groups.create(here.compute, project_id="demo", user_id="dora", name="g", policy=AFFINITY)
    assert (made.name, made.policy, made.members) == ("g", AFFINITY, ())
    server = here.boot(hints={"group": made.id})[0]
    assert server.group_id == made.id
    assert server_groups.get(here.compute, made.id, "demo").members == (server.id,)
    assert [found.id for found in server_groups.listed(here.compute, "demo")] == [made.id]
    assert server_groups.listed(here.compute, "other") == []
    server_groups.delete(here.compute, made.id, "demo")
    assert server_groups.listed(here.compute) == []
    assert here.look(server.id).group_id is None


def test_what_is_not_ones_own_is_not_found(here: Place) -> None:
    theirs = group(here, AFFINITY, "other")
    for wanted in (theirs, str(uuid4()), "no id"):
        for verb in (server_groups.get, server_groups.delete):
            with pytest.raises(NotFound):
                verb(here.compute, wanted, "demo")
    assert server_groups.get(here.compute, theirs).project_id == "other"


@pytest.mark.parametrize("hint", ["no id", 7, ["a"], "5f0c6a51-0000-4000-8000-000000000000"])
def test_a_hint_that_names_no_group_is_refused(here: Place, hint: object) -> None:
    with pytest.raises(BadRequest, match="group"):
        here.boot(hints={"group": hint})
    with pytest.raises(BadRequest, match="could not be found"):
        here.boot(hints={"group": group(here, AFFINITY, "other")})
    assert here.count("compute_servers") == 0


def named(here: Place, name: str, project_id: str = "demo") -> str:
    owner = {"project_id": project_id, "user_id": "dora"}
    return server_groups.create(here.compute, name=name, policy=ANTI_AFFINITY, **owner).id


def test_a_group_is_named_by_its_name_in_its_project(here: Place) -> None:
    mine = named(here, "group-1")
    named(here, "group-1", "other")
    made = [here.boot(hints={"group": "group-1"}, networks=())[0] for _ in range(3)]
    assert {server.group_id for server in made} == {mine}
    assert len({server.node for server in made}) == 3


def test_a_name_of_no_group_or_of_several_is_refused(here: Place) -> None:
    named(here, "theirs", "other")
    with pytest.raises(BadRequest, match="Server group theirs could not be found"):
        here.boot(hints={"group": "theirs"})
    first = named(here, "twice")
    named(here, "twice")
    with pytest.raises(BadRequest, match=f"Several server groups are named twice: .* {first}"):
        here.boot(hints={"group": "twice"})
    assert here.count("compute_servers") == 0


def test_an_id_is_an_id_though_a_group_is_called_so(here: Place) -> None:
    first = named(here, "plain")
    named(here, first)
    assert here.boot(hints={"group": first}, networks=())[0].group_id == first


def test_a_policy_is_one_that_a_filter_keeps(here: Place) -> None:
    with pytest.raises(BadRequest, match="soft-anti-affinity, not 'near'"):
        group(here, "near")
    kept = tuple(rule for rule in here.compute.rules.filters if "Affinity" not in rule.name)
    made = group(here, ANTI_AFFINITY)
    here.compute = replace(here.compute, rules=replace(here.compute.rules, filters=kept))
    with pytest.raises(BadRequest, match="not supported"):
        here.boot(hints={"group": made})
    soft = group(here, SOFT_AFFINITY)
    here.compute = replace(here.compute, rules=replace(here.compute.rules, weighers=(RAM,)))
    with pytest.raises(BadRequest, match="needs ServerGroupSoftAffinityWeigher"):
        here.boot(hints={"group": soft})


def test_a_project_has_so_many_groups_and_a_group_so_many_members(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(
            text("INSERT INTO compute_quotas (project_id, server_groups, server_group_members) VALUES ('demo', 2, 3)")
        )
    first, _ = group(here, AFFINITY), group(here, AFFINITY)
    with pytest.raises(QuotaExceeded, match="may have 2"):
        group(here, AFFINITY)
    here.boot(count=2, least=2, hints={"group": first})
    with pytest.raises(QuotaExceeded, match="2 of 3"):
        here.boot(count=2, least=2, hints={"group": first})
    assert len(here.boot(count=2, least=1, hints={"group": first})) == 1


def test_apart_means_a_node_each_and_no_more(here: Place) -> None:
    """FS-16."""
    apart = group(here, ANTI_AFFINITY)
    nodes = [boot(here, apart) for _ in range(5)]
    assert sorted(filter(None, nodes)) == ["n1", "n2", "n3", "n4"]
    assert nodes[4] is None
    built = here.boot(count=5, least=2, hints={"group": group(here, ANTI_AFFINITY)}, networks=())
    assert sorted(str(server.node) for server in built) == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(("policy", "kept", "refused"), [(ANTI_AFFINITY, "n2", "n1"), (AFFINITY, "n1", "n2")])
def test_the_policy_is_kept_of_a_server_that_is_forced_to_a_node(
    here: Place, policy: str, kept: str, refused: str
) -> None:
    made = group(here, policy)
    assert boot(here, made, zone="nova::n1", admin=True) == "n1"
    assert boot(here, made, zone=f"nova::{refused}", admin=True) is None
    assert boot(here, made, zone=f"nova::{kept}", admin=True) == kept


def test_together_means_one_node(here: Place) -> None:
    """FS-16; and where it is full, nothing more."""
    together = group(here, AFFINITY)
    nodes = [boot(here, together, flavor=HALF) for _ in range(4)]
    assert nodes[0] is not None
    assert nodes == [nodes[0]] * 3 + [None]
    built = here.boot(count=3, least=3, hints={"group": group(here, AFFINITY)}, networks=())
    assert len({server.node for server in built}) == 1


def test_a_soft_policy_refuses_nothing(here: Place) -> None:
    apart, together = group(here, SOFT_ANTI_AFFINITY), group(here, SOFT_AFFINITY)
    nodes = [boot(here, apart) for _ in range(5)]
    assert sorted(filter(None, nodes[:4])) == ["n1", "n2", "n3", "n4"]
    assert nodes[4] is not None
    near = [boot(here, together) for _ in range(2)]
    assert near[0] == near[1] is not None


def test_apart_may_mean_several_on_a_node(here: Place) -> None:
    two = server_groups.create(
        here.compute, project_id="demo", user_id="dora", name="two", policy=ANTI_AFFINITY, most=2
    )
    assert server_groups.get(here.compute, two.id).rules == {"max_server_per_host": 2}
    built = here.boot(count=9, least=2, hints={"group": two.id}, networks=())
    assert Counter(str(server.node) for server in built) == {"n1": 2, "n2": 2, "n3": 2, "n4": 2}
    assert here.boot(hints={"group": two.id}, networks=())[0].node is None
    with pytest.raises(BadRequest, match="Only the policy anti-affinity supports rules"):
        server_groups.create(here.compute, project_id="demo", user_id="dora", name="g", policy=AFFINITY, most=2)


def test_members_that_are_asked_for_at_once_keep_the_policy(here: Place) -> None:
    apart, together = group(here, ANTI_AFFINITY), group(here, AFFINITY)
    with ThreadPoolExecutor(16) as pool:
        separate = list(pool.map(lambda _: boot(here, apart), range(8)))
        joined = list(pool.map(lambda _: boot(here, together), range(8)))
    assert sorted(filter(None, separate)) == ["n1", "n2", "n3", "n4"]
    assert len(set(joined)) == 1


def test_a_retry_keeps_the_policy_too(scratch: str, tmp_path: Path) -> None:
    driver = MemoryDriver([node("n1"), node("n2"), node("n3")])
    with place(scratch, tmp_path, [], driver) as here:
        apart = group(here, ANTI_AFFINITY)
        first = here.boot_one(hints={"group": apart}, networks=())
        driver.broken = {"n1", "n2", "n3"} - {str(first.node)}
        failed = here.boot(hints={"group": apart}, networks=())[0]
        assert failed.status == BUILD
        here.settle()
        assert here.look(failed.id).status == ERROR
        assert ("run", failed.id) not in driver.calls
        driver.broken = {str(failed.node)}
        assert here.look(first.id).status == ACTIVE


def test_nobody_joins_while_a_member_moves(scratch: str, tmp_path: Path) -> None:
    """A member is moved off its broken node; another one is asked for after the new node is chosen."""
    driver = MemoryDriver([node(name) for name in ("n1", "n2", "n3")], broken={"n1"})
    with place(scratch, tmp_path, [], driver) as here, ThreadPoolExecutor(1) as pool:
        apart = group(here, ANTI_AFFINITY)
        moving = here.boot(hints={"group": apart}, networks=())[0]
        joining: list[Future[str | None]] = []

        def schedule(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
            plan = select(hosts, spec, count, rules)
            joining.append(pool.submit(boot, here, apart))
            await_blocked(here.compute.engine, joining[-1].done)
            return plan

        task_worker.run_task(replace(here.compute, schedule=schedule), moving.id)
        assert here.look(moving.id).node == "n2"
        assert [other.result() for other in joining] != ["n2"]
