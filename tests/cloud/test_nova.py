"""Lending the hosts of a Nova: what differs from a cloud of our own, and what breaks off half-way."""

from dataclasses import replace

import pytest

from climate.cloud import FREEPOOL, MAINTENANCE, RECYCLING, RESERVED, Capacity, Cloud, Fenced, NotYet, Refused
from climate.cloud.openstack import fencing
from climate.cloud.openstack.pools.aggregates import BOOK, CLOSED, GRANTED, NOBODY, OWNER, TENANT
from climate.cloud.openstack.servers import SLEEPS
from tests.cloud.nova import Nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1, N2 = "n1.example.org", "n2.example.org"


def test_the_reservation_pool_is_created_with_the_first_host_and_is_nobodys(there: Nova, cloud: Cloud) -> None:
    assert cloud.pools() == {FREEPOOL: frozenset()}
    cloud.enrol(N1, 1)
    assert (there.of(FREEPOOL)["hosts"], there.of(FREEPOOL)["metadata"]) == (["n1"], {TENANT: NOBODY})
    assert cloud.pools() == {FREEPOOL: {N1}}


def test_a_service_of_several_hypervisors_is_not_allocated_as_one(there: Nova, cloud: Cloud) -> None:
    cloud.enrol("m1", 1)
    assert there.of(FREEPOOL)["hosts"] == ["m1"]
    there.of(FREEPOOL)["hosts"] = ["metal"]
    assert cloud.pools() == {FREEPOOL: {"m1", "m2"}}


def test_a_host_that_moves_is_in_a_pool_at_every_moment(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1)
    assert there.log[-2:] == ["add_host r1 n1", "remove_host freepool n1"]
    assert {OWNER: "demo", TENANT: "demo"}.items() <= there.of("r1")["metadata"].items()
    cloud.take_back("r1", [N1], 2)
    assert there.log[-3:] == ["add_host freepool n1", "remove_host r1 n1", "drop r1"]


@pytest.mark.parametrize("verb", ["lend", "take_back"])
def test_a_move_that_broke_off_half_way_is_finished(there: Nova, cloud: Cloud, verb: str) -> None:
    there.put(FREEPOOL, ("n1",))
    there.put("r1", ("n1",), **{OWNER: "demo"})
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {N1}}
    if verb == "lend":
        cloud.lend("r1", "demo", [N1], 1)
        assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {N1}}
        assert there.of(FREEPOOL)["hosts"] == []
    else:
        cloud.take_back("r1", [N1], 1)
        assert cloud.pools() == {FREEPOOL: {N1}}


def test_a_placing_that_broke_off_half_way_is_finished(there: Nova, cloud: Cloud) -> None:
    there.put("r1", ("n1",), **{OWNER: "demo"})
    there.put(RECYCLING, ("n1",), **{TENANT: NOBODY})
    there.run("s1", N1)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": frozenset(), RECYCLING: {N1}}
    cloud.place(N1, RECYCLING, 1)
    assert (there.of("r1")["hosts"], there.of(RECYCLING)["hosts"]) == ([], ["n1"])
    cloud.place(N1, "r1", 2)
    assert there.log[-2:] == ["add_host r1 n1", "remove_host recycling n1"]
    cloud.place(N1, None, 3)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": frozenset()}


def test_a_host_that_gets_a_server_while_it_is_placed_is_not_kept(there: Nova, cloud: Cloud) -> None:
    there.before = lambda verb: there.run("s1", N1) if verb == "add_host" else None
    with pytest.raises(NotYet, match="servers are still on"):
        cloud.place(N1, FREEPOOL, 1)
    assert cloud.pools() == {FREEPOOL: frozenset()}


def test_an_aggregate_of_an_administrator_is_no_pool_by_its_name(there: Nova, cloud: Cloud) -> None:
    there.put(MAINTENANCE, ("n2",), rack="7")
    assert cloud.pools() == {FREEPOOL: frozenset()}
    with pytest.raises(Refused, match="the aggregate maintenance is not a pool of climate"):
        cloud.place(N1, MAINTENANCE, 1)
    assert there.of(MAINTENANCE)["hosts"] == ["n2"]


def test_a_pool_that_was_created_and_not_marked_is_marked(there: Nova, cloud: Cloud) -> None:
    there.put(MAINTENANCE)
    cloud.place(N1, MAINTENANCE, 1)
    assert (there.of(MAINTENANCE)["hosts"], there.of(MAINTENANCE)["metadata"]) == (["n1"], {TENANT: NOBODY})


def test_a_closed_pool_is_nobodys_until_it_is_allocated_again(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.enrol(N2, 1)
    cloud.lend("r1", "demo", [N1], 1)
    cloud.close("r1", 2)
    shut = {CLOSED: "true", OWNER: NOBODY, TENANT: NOBODY}
    assert shut.items() <= there.of("r1")["metadata"].items()
    cloud.lend("r1", "demo", [N1, N2], 3)
    assert cloud.pools()["r1"] == {N1, N2}
    found = there.of("r1")["metadata"]
    assert (found[OWNER], found[TENANT], CLOSED in found) == ("demo", "demo", False)


def test_a_pool_is_closed_before_it_is_looked_for_servers(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1)
    there.run("s1", N1)
    there.run("s2", N2)
    with pytest.raises(NotYet, match="1 servers"):
        cloud.take_back("r1", [N1], 2)
    assert there.of("r1")["metadata"][OWNER] == NOBODY
    assert [server.id for server in cloud.servers_in("r1")] == ["s1"]


def test_a_host_that_gets_a_server_while_it_is_enrolled_is_not_kept(there: Nova, cloud: Cloud) -> None:
    there.before = lambda verb: there.run("s1", N1) if verb == "add_host" else None
    with pytest.raises(Refused, match="has servers"):
        cloud.enrol(N1, 1)
    assert cloud.pools() == {FREEPOOL: frozenset()}


def test_a_later_claim_that_writes_at_the_same_moment_is_seen(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)

    def overtake(verb: str) -> None:
        there.of(BOOK)["metadata"] |= fencing.raising({}, [fencing.of_host(N1)], 8)

    there.before = overtake
    with pytest.raises(Fenced):
        cloud.lend("r1", "demo", [N1], 7)
    assert cloud.pools() == {FREEPOOL: {N1}}


def test_the_book_is_no_pool_of_anybodys(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1)
    assert there.of(BOOK)["metadata"][OWNER] == NOBODY
    assert set(cloud.pools()) == {FREEPOOL, "r1"}
    for name in (BOOK, FREEPOOL):
        with pytest.raises(Refused):
            cloud.take_back(name, [N1], 2)


def test_the_book_forgets_servers_that_are_gone(there: Nova, cloud: Cloud) -> None:
    for number in range(1, 9):
        there.run(f"s{number}", N1)
        cloud.delete_server(f"s{number}", number)
        there.servers.pop(f"s{number}", None)
    kept = fencing.servers(there.of(BOOK)["metadata"])
    assert "s8" in kept
    assert len(kept) <= 3
    cloud.delete_server("s8", 9)
    assert "s8" not in fencing.servers(there.of(BOOK)["metadata"])


def test_only_servers_that_sleep_for_a_lease_are_counted_as_such(there: Nova, cloud: Cloud) -> None:
    """The others are shelved by their owners, and would be swept away for having no lease."""
    there.run("mine", "", status="SHELVED_OFFLOADED", metadata={SLEEPS: "true"})
    there.run("theirs", "", status="SHELVED")
    assert [server.id for server in cloud.sleeping()] == ["mine"]
    found = cloud.server("theirs")
    assert found is not None
    assert found.status == RESERVED


def test_a_server_that_was_woken_for_its_lease_no_longer_sleeps_for_one(there: Nova, cloud: Cloud) -> None:
    there.run("mine", "", status="SHELVED_OFFLOADED", metadata={SLEEPS: "true", "a": "b"})
    cloud.wake("mine", 1)
    assert there.log[-1] == "unshelve mine"
    there.servers["mine"]["status"] = "ACTIVE"
    cloud.wake("mine", 1)
    assert there.servers["mine"]["metadata"] == {"a": "b"}
    assert there.log.count("unshelve mine") == 1


@pytest.mark.parametrize("task", ["shelving_offloading", "rebooting"])
def test_what_is_under_way_is_waited_for(there: Nova, cloud: Cloud, task: str) -> None:
    there.run("s1", N1, status="SHELVED", **{"OS-EXT-STS:task_state": task})
    with pytest.raises(NotYet, match=task):
        cloud.wake("s1", 1)
    with pytest.raises(NotYet, match=task):
        cloud.suspend("s1", 1)


def test_what_is_being_woken_is_not_woken_again(there: Nova, cloud: Cloud) -> None:
    there.run("s1", "", status="SHELVED_OFFLOADED", **{"OS-EXT-STS:task_state": "unshelving"})
    cloud.wake("s1", 1)
    assert there.log == [f"make {BOOK}"]


def test_a_users_metadata_holds_no_claim_up(there: Nova, cloud: Cloud) -> None:
    there.run("s1", N1, metadata=dict.fromkeys(fencing.raising({}, [fencing.of_server("s1")], 2**60), "1"))
    cloud.delete_server("s1", 1)
    assert there.log[-1] == "delete s1"


def test_a_running_server_leaves_its_host_live(there: Nova, cloud: Cloud) -> None:
    there.run("s1", N1)
    for _ in range(2):
        cloud.move_server("s1", N1, 1)
        there.servers["s1"]["OS-EXT-STS:task_state"] = "migrating"
    assert [line for line in there.log if "migrate" in line.lower()] == ["os-migrateLive s1"]
    there.servers["s1"] |= {"OS-EXT-STS:task_state": None, "OS-EXT-SRV-ATTR:hypervisor_hostname": N2}
    cloud.move_server("s1", N1, 2)
    cloud.move_server("nobody", N1, 2)
    assert there.log[-1] == "os-migrateLive s1"
    there.run("s2", N1, status="SHUTOFF")
    with pytest.raises(Refused, match="only running servers"):
        cloud.move_server("s2", N1, 1)


def test_hypervisors_whose_service_is_down_are_silent(there: Nova, cloud: Cloud) -> None:
    assert cloud.silent_hosts() == frozenset()
    there.down = {"n1", "metal"}
    assert cloud.silent_hosts() == {N1, "m1", "m2"}
    assert cloud.health()[N1] == "its service n1 is down"


@pytest.mark.parametrize("passwords", [True, False])
def test_a_server_of_a_silent_host_is_evacuated_once(there: Nova, cloud: Cloud, passwords: bool) -> None:
    """The answer has a password or no body, as Nova is configured."""
    there.down, there.passwords = {"n1"}, passwords
    there.run("s1", N1)
    for _ in range(2):
        cloud.evacuate_server("s1", N1, 1)
    assert [line for line in there.log if line.startswith("evacuate")] == ["evacuate s1"]
    there.servers["s1"] |= {"OS-EXT-STS:task_state": None, "OS-EXT-SRV-ATTR:hypervisor_hostname": N2}
    cloud.evacuate_server("s1", N1, 2)
    cloud.evacuate_server("nobody", N1, 2)
    assert there.log[-1] == "evacuate s1"


def test_what_nova_does_not_evacuate_is_refused_or_waited_for(there: Nova, cloud: Cloud) -> None:
    there.run("s1", N1)
    with pytest.raises(Refused, match="still in use"):
        cloud.evacuate_server("s1", N1, 1)
    there.down = {"n1"}
    there.servers["s1"]["OS-EXT-STS:task_state"] = "powering-off"
    with pytest.raises(NotYet):
        cloud.evacuate_server("s1", N1, 2)
    there.servers["s1"]["OS-EXT-STS:task_state"] = None
    with pytest.raises(Fenced):
        cloud.evacuate_server("s1", N1, 1)
    cloud.evacuate_server("s1", N1, 3)
    assert there.log[-1] == "evacuate s1"


def test_a_server_that_is_to_move_alone_waits_for_another_that_moves(there: Nova, cloud: Cloud) -> None:
    there.run("s1", N1)
    there.run("s2", N1, **{"OS-EXT-STS:task_state": "migrating"})
    with pytest.raises(NotYet, match="another server is still migrating"):
        cloud.move_server("s1", N1, 1, alone=True)
    there.servers["s2"]["OS-EXT-STS:task_state"] = None
    cloud.move_server("s1", N1, 1, alone=True)
    assert there.log[-1] == "os-migrateLive s1"


def test_a_pool_that_gets_a_host_while_it_is_deleted_is_deleted_later(there: Nova, cloud: Cloud) -> None:
    """Nova refuses to delete an aggregate with hosts by 400, as it refuses what never succeeds."""
    for name in (N1, N2):
        cloud.enrol(name, 1)
    cloud.lend("r1", "demo", [N1], 1)
    there.before = lambda verb: there.of("r1")["hosts"].append("n2") if verb == "remove_host" else None
    with pytest.raises(NotYet, match="another host is in the pool r1"):
        cloud.take_back("r1", [N1], 2)
    there.before = lambda verb: None
    cloud.take_back("r1", [N1], 2)
    assert cloud.pools() == {FREEPOOL: {N1, N2}}


SHARED = {"climate:shared:guest": "true", "filter_tenant_id:0": "demo", "filter_tenant_id:1": "guest"}


def test_a_pool_of_several_projects_admits_all_of_them(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1, ("guest",))
    assert {OWNER: "demo", TENANT: "demo,guest", **SHARED}.items() <= there.of("r1")["metadata"].items()
    cloud.lend("r1", "demo", [N1], 2)
    found = there.of("r1")["metadata"]
    assert found[TENANT] == "demo"
    assert not SHARED.keys() & found.keys()
    assert found["climate:admitted:guest"] == "true", "servers of the project are of the lease until its end"
    cloud.lend("r1", "demo", [N1], 3, ("guest",))
    cloud.close("r1", 4)
    found = there.of("r1")["metadata"]
    assert (found[OWNER], found[TENANT]) == (NOBODY, NOBODY)
    assert not SHARED.keys() & found.keys()


def test_servers_of_all_its_projects_are_of_the_lease(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1, ("guest", "gone"))
    cloud.lend("r1", "demo", [N1], 2, ("guest",))
    for project in ("demo", "guest", "gone", "stranger"):
        there.run(project, N1, tenant_id=project)
    assert {server.project_id for server in cloud.servers_in("r1")} == {"demo", "guest", "gone"}
    cloud.close("r1", 3)
    assert {server.project_id for server in cloud.servers_in("r1")} == {"demo", "guest", "gone"}


def test_more_projects_than_nova_lists_are_refused(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    with pytest.raises(Refused, match="no room for 9 projects"):
        cloud.lend("r1", "demo", [N1], 1, [f"{number:032}" for number in range(8)])


def test_slots_of_several_projects_are_for_all_of_them(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    there.flavor("r1")
    size = Capacity("r1", "demo", 2, 4096, 20, {N1: 2}, shared_with=("guest",))
    cloud.grant(size, 1)
    assert there.access["r1"] == {"demo", "guest"}
    assert {GRANTED: "demo", TENANT: "demo,guest", **SHARED}.items() <= there.of("r1")["metadata"].items()
    cloud.grant(replace(size, shared_with=("other",)), 2)
    assert there.access["r1"] == {"demo", "other"}
    cloud.close("r1", 3)
    assert there.access["r1"] == set()
    assert not [key for key in there.of("r1")["metadata"] if key.startswith("climate:shared:")]
