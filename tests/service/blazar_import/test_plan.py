"""Which hosts and leases are imported together, and which refusals lead to others."""

from dataclasses import replace

import pytest

from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.period import Period
from climate.service.blazar_import import plan
from climate.service.blazar_import.plan import CloudView, Plan, Present
from climate.service.blazar_import.records import BlazarData, BlazarHost, BlazarLease, WantedAddresses
from climate.service.blazar_import.timelines import Entry
from tests.service.blazar_import.blazar_factory import address, host, hour, lease, servers
from tests.service.blazar_import.recordings import number

FREE = frozenset({"freepool"})
TYPES = frozenset({"physical:host", "virtual:instance", "virtual:floatingip"})
PRESENT = Present(types=TYPES)


def view(pools: dict[str, str], known: tuple[str, ...] = (), **more: frozenset[str]) -> CloudView:
    """A cloud with these hosts in a pool each, and others in none."""
    return CloudView(frozenset((*pools, *known)), {name: frozenset({pool}) for name, pool in pools.items()}, **more)


def made(
    hosts: list[BlazarHost], leases: list[BlazarLease], cloud: CloudView | None = None, present: Present = PRESENT
) -> Plan:
    cloud = cloud or view({one.name: "freepool" for one in hosts})
    return plan.build(BlazarData(tuple(hosts), leases=tuple(leases)), cloud, present)


def names(result: Plan) -> list[str]:
    return [one.blazar.name for one in result.leases]


def refused(result: Plan) -> dict[str, str]:
    return {one.name: one.reason for one in result.refusals}


def test_a_host_in_the_aggregate_of_its_active_lease_is_lent() -> None:
    result = made([host("1")], [lease("a", "1", -1, 1, "ACTIVE")], view({"h1": str(number("a-"))}))
    assert (result.hosts["1"].pool, result.hosts["1"].reservation_id) == (Pool.LENT, number("a-"))
    assert (names(result), refused(result)) == (["a"], {})


def test_an_active_lease_whose_host_is_elsewhere_is_refused_with_its_host() -> None:
    """Its servers may run there, so nobody else gets the host; what is booked on it is refused as well."""
    result = made([host("1"), host("2")], [lease("a", "1", -1, 1, "ACTIVE"), lease("b", "1"), lease("c", "2")])
    assert names(result) == ["c"]
    assert refused(result) == {
        "a": f"it is active, but its host h1 is not in the aggregate {number('a-')}",
        "h1": f"the lease {number('a')} has begun on it, and is not imported",
        "b": "its host 1 is not imported",
    }


def test_a_refused_lease_with_two_hosts_takes_others_along_over_several_steps() -> None:
    begun = lease("a", ["1", "2"], -1, 1, "ACTIVE")
    other = lease("b", ["2", "3"], -1, 1, "ACTIVE", wanted=servers(2))
    result = made([host("1"), host("2"), host("3")], [begun, other, lease("c", "3")])
    assert names(result) == []
    assert set(refused(result)) == {"a", "b", "c", "h1", "h2", "h3"}


@pytest.mark.parametrize("pool", ["maintenance", str(number("unknown-")), str(number("b-"))])
def test_a_host_in_another_aggregate_is_refused(pool: str) -> None:
    result = made([host("1")], [lease("b")], view({"h1": pool}))
    assert refused(result) == {"h1": f"it is in {pool}, not as its leases say"}


def test_a_host_in_two_aggregates_is_refused() -> None:
    cloud = CloudView(frozenset({"h1"}), {"h1": frozenset({"freepool", str(number("a-"))})})
    result = made([host("1")], [lease("a", "1", -1, 1, "ACTIVE")], cloud)
    assert set(refused(result)) == {"h1", "a"}


def test_a_host_in_no_aggregate_is_imported_unless_it_has_servers() -> None:
    cloud = view({}, ("h1", "h2"), occupied=frozenset({"h2"}))
    result = made([host("1"), host("2")], [], cloud)
    assert list(result.hosts) == ["1"]
    assert refused(result) == {"h2": "it has servers and is in no aggregate of Blazar"}


def test_hosts_that_climate_cannot_have_are_refused() -> None:
    twice = [host("1", "same"), host("2", "same"), host("3", vcpus="9"), host("4", "gone")]
    result = made(twice, [], view({"same": "freepool", "h3": "freepool"}))
    assert list(result.hosts) == ["1"]
    assert {one.id: one.reason for one in result.refusals} == {
        "2": "another host of Blazar has the same name",
        "3": "Extra capability vcpus is the name of something that every host has",
        "4": "the cloud has no hypervisor named 'gone'",
    }


def test_of_two_overlapping_leases_the_one_that_has_begun_is_kept_and_then_the_older_one() -> None:
    later = lease("later", "1", 0.5, 3, created=-1)
    older = lease("older", "1", 2, 4, created=-2)
    active = lease("active", "1", -1, 1, "ACTIVE", created=0)
    result = made([host("1")], [later, older, active], view({"h1": str(number("active-"))}))
    assert names(result) == ["active", "older"]
    assert refused(result) == {
        "later": f"its allocation of the host h1 overlaps with the lease {number('active')}",
    }


def test_leases_one_after_the_other_do_not_overlap() -> None:
    assert set(names(made([host("1")], [lease("a", "1", 1, 2), lease("b", "1", 2, 3)]))) == {"a", "b"}


def test_servers_share_a_host_up_to_its_size() -> None:
    """The host has 8 CPUs, and more with overcommitment."""
    shares = [lease(name, ["1"] * 3, wanted=servers(3), created=at) for at, name in enumerate("abc")]
    assert names(made([host("1")], shares)) == ["a", "b"]
    roomy = replace(host("1"), amounts={"VCPU": 16})
    assert names(made([roomy], shares)) == ["a", "b", "c"]


def test_a_host_is_not_shared_with_a_lease_of_the_whole() -> None:
    whole, share = lease("whole", "1", created=-2), lease("share", "1", wanted=servers(1))
    assert refused(made([host("1")], [whole, share])) == {
        "share": f"its allocation of the host h1 overlaps with the lease {number('whole')}"
    }
    assert refused(made([host("1")], [replace(whole, created_at=hour(0)), share])) == {
        "whole": f"its allocation of the host h1 overlaps with the lease {number('share')}"
    }


def test_a_lease_that_overlaps_with_itself_is_refused() -> None:
    double = lease("a", "1")
    double = replace(double, reservations=(*double.reservations, *lease("b", "1").reservations))
    assert refused(made([host("1")], [double])) == {
        "a": "its own allocations of the host h1 overlap, or are larger than the host"
    }


def test_leases_that_are_over_overlap_with_nothing_and_need_no_host() -> None:
    over = lease("over", ["1", "9"], 1, 2, "TERMINATED")
    assert names(made([host("1")], [over, lease("a", "1", 1, 2)])) == ["over", "a"]


def test_addresses_are_refused_with_the_leases_that_have_them() -> None:
    closed, sixth = address(1, reservable=False), replace(address(2), address="2001:db8::1")
    on_closed = lease("a", wanted=WantedAddresses("net", 1, ()))
    on_closed = replace(on_closed, reservations=(replace(on_closed.reservations[0], addresses=(closed.id,)),))
    data = BlazarData((), (closed, sixth, address(3)), (on_closed,))
    result = plan.build(data, view({}), PRESENT)
    assert list(result.addresses) == [address(3).id]
    assert refused(result) == {
        "203.0.113.1": "it is not reservable in Blazar",
        "2001:db8::1": "the address 2001:db8::1 is no IPv4 address",
        "a": f"its floating IP {closed.id} is not imported",
    }


def registered(pool: Pool) -> HostPlace:
    return HostPlace(77, number("stream"), "h1", pool, hour(0))


def test_what_climate_has_is_not_imported_again() -> None:
    present = replace(PRESENT, hosts={"h1": registered(Pool.RESERVATION)}, leases=frozenset({number("a")}))
    result = made([host("1")], [lease("a", "1"), lease("b", "1", 5, 6)], view({}), present)
    assert (names(result), result.known, result.hosts["1"].number) == (["b"], (number("a"),), 77)


def test_allocations_that_climate_has_are_respected() -> None:
    entry = Entry("a lease here", Period(hour(1), hour(2)))
    present = replace(PRESENT, hosts={"h1": registered(Pool.RESERVATION)}, entries=((77, entry),))
    result = made([host("1")], [lease("a", "1")], view({}), present)
    assert refused(result) == {"a": "its allocation of the host h1 overlaps with the lease a lease here"}


def test_a_registered_host_that_is_not_for_leases_is_refused() -> None:
    present = replace(PRESENT, hosts={"h1": registered(Pool.MULTI_TENANT)})
    result = made([host("1")], [], view({}), present)
    assert refused(result) == {"h1": "it is registered here, in the pool multi-tenant"}


def test_refusals_spread_along_a_chain() -> None:
    """A chain in which each refusal is found only after the one before it."""
    chain = [lease(f"l{n}", [str(n), str(n + 1)], -1, 1, "ACTIVE", wanted=servers(2), created=-n) for n in range(20)]
    hosts = [host(str(n)) for n in range(21)]
    hosts[0] = replace(hosts[0], name="gone")
    result = made(hosts, chain, view({one.name: "freepool" for one in hosts[1:]}))
    assert (names(result), len(result.refusals)) == ([], 41)
