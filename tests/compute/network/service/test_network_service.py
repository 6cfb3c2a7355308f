"""The network service: its host does what the database says, and goes on with the rest whatever fails."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from structlog.testing import capture_logs

from climate.compute.errors import Conflict, NetworkError
from climate.compute.network import fixed_ips, floating_ips, networks
from climate.compute.network.driver import DhcpAction, Entry, Forward, Link, NetworkServices, Vpn
from climate.compute.store.networks import network_hosts
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import ONE, TWO, Books


def told(there: Books, network_id: str, host: str = ONE) -> dict[str, str]:
    """Address -> MAC, as DHCP hands it out."""
    served = there.wire(host).serving[network_id]
    assert served.dhcp is not None
    return {str(entry.address): entry.mac for entry in served.dhcp.entries}


def known(there: Books, network_id: str) -> dict[str, str]:
    """The same, as the database has it."""
    with there.compute.engine.connect() as conn:
        query = (
            f"SELECT host(address), mac FROM compute_addresses WHERE network_id = '{network_id}' AND vif_id IS NOT NULL"
        )
        return {row[0]: row[1] for row in conn.exec_driver_sql(query)}


class Fails:
    """Fails at these verbs, as often as asked for."""

    def __init__(self, *verbs: str, times: int = 1) -> None:
        self.left = dict.fromkeys(verbs, times)
        self.asked: list[str] = []

    def __call__(self, verb: str) -> None:
        self.asked.append(verb)
        if self.left.get(verb, 0) > 0:
            self.left[verb] -= 1
            raise NetworkError(f"{verb} does not work")


def test_what_is_called_for_is_served_and_a_quiet_beat_touches_nothing(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    there.settle()
    there.wire().fails = fails = Fails()
    there.tend()
    assert fails.asked == ["happened"]
    there.boot(2)
    there.tend()
    assert told(there, network.id) == known(there, network.id) != {}
    assert there.place.count("compute_network_calls") == 0
    fails.asked.clear()
    there.tend()
    assert fails.asked == ["happened"]
    fails.asked.clear()
    there.tend(thorough=True)
    assert fails.asked == ["happened", "translate", "serve", "standing"]


@pytest.mark.parametrize(
    "verb", ["happened", "forget", "serve", "unserve", "standing", "translate", "release", "unchanged"]
)
def test_a_fault_keeps_nothing_else_from_being_done_and_is_mended(cloud: Cloud, verb: str) -> None:
    there = cloud(manager="vlan")
    keeps, loses = there.served("net", "10.0.0.0/27", count=2, size=16)
    first, second = there.boot(project_id="p1")[0], there.boot(2, project_id="p1", networks=None)
    there.settle()
    held = there.vifs(first.id)[0]
    there.tell(DhcpAction.LEASED, keeps.id, str(held.addresses[0]), held.mac)
    there.tend()
    with there.compute.engine.begin() as conn:
        networks.disassociate(conn, loses.id)
        conn.exec_driver_sql(f"UPDATE compute_networks SET host = '{TWO}' WHERE id = '{loses.id}'")
        network_hosts.beat(conn, TWO, there.clock.time)
    there.tell(DhcpAction.RENEWED, keeps.id, str(held.addresses[0]), held.mac)
    there.delete(second[0].id)
    there.wire().fails = fails = Fails(verb)
    there.tend()
    others = {"happened", "serve", "standing", "unserve", "translate", "release"} - {verb}
    others -= {"unserve"} if verb == "standing" else set()
    others -= {"release"} if verb == "serve" else set()
    assert others <= set(fails.asked)
    there.tend()
    assert set(there.wire().serving) == {keeps.id}
    assert told(there, keeps.id) == known(there, keeps.id)
    assert there.wire().nat is not None
    assert there.wire().nat.bridges == (keeps.bridge,)
    assert there.place.count("compute_network_calls", f"host = '{ONE}'") == 0
    there.tend()
    assert there.place.count("compute_addresses", "server_id IS NOT NULL AND vif_id IS NULL") == 0
    assert (there.wire().events, there.wrong()) == ({}, [])


def test_a_call_costs_no_more_than_the_networks_that_have_changed(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    one, other, idle = there.served("net", "10.0.0.0/26", count=3, size=16)
    mine = there.boot(project_id="p1")[0]
    there.boot(project_id="p2")
    there.settle()
    there.wire().fails = fails = Fails()

    def served() -> int:
        asked = fails.asked.count("serve")
        fails.asked.clear()
        return asked

    there.boot(project_id="p2")
    there.tend()
    assert (served(), told(there, other.id)) == (1, known(there, other.id))
    held = there.vifs(mine.id)[0]
    there.forward(30)
    there.tell(DhcpAction.RENEWED, one.id, str(held.addresses[0]), held.mac)
    there.boot(project_id="p2")
    there.tend()
    assert served() == 1, "that a client is still there changes nothing"
    there.wire().unserve(idle.id)
    there.delete(mine.id)
    there.tend()
    assert (served(), set(there.wire().serving)) == (2, {one.id, other.id, idle.id})
    assert there.row(str(held.addresses[0])) == (False, False, False), "freed though its network was only looked at"
    there.tend(thorough=True)
    assert (served(), there.wrong()) == (3, [])


def test_a_network_that_cannot_be_served_leaves_the_others_served(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    bad, good = there.served("net", "10.0.0.0/27", count=2, size=16)
    for project in ("p1", "p2"):
        there.boot(project_id=project)
    there.wire().fails = Fails("serve")
    there.tend()
    assert (told(there, bad.id), told(there, good.id)) == ({}, known(there, good.id))
    assert there.place.count("compute_network_calls") == 2, "what was not heeded is called for again"
    there.tend()
    assert told(there, bad.id) == known(there, bad.id) != {}


def test_addresses_are_not_free_while_a_server_of_dhcp_may_hand_them_out(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    server = there.boot()[0]
    there.settle()
    address = there.fixed(server.id)[0]
    there.delete(server.id)
    there.wire().fails = Fails("serve")
    there.tend()
    assert there.row(address) == (True, False, False)
    there.tend()
    assert there.row(address) == (False, False, False)


def test_what_happened_is_written_down_before_it_is_forgotten_and_may_be_reported_twice(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", force_release=False)
    network = there.served("private", "10.0.0.0/28")[0]
    server = there.boot()[0]
    vif, address = there.vifs(server.id)[0], there.fixed(server.id)[0]
    there.wire().fails = Fails("forget", times=2)
    there.tell(DhcpAction.LEASED, network.id, address, vif.mac)
    for _ in range(2):
        there.tend()
        assert there.row(address) == (True, True, True)
        assert len(there.wire().events) == 1
    there.delete(server.id)
    there.wire().fails = Fails("forget", times=1)
    there.tell(DhcpAction.RELEASED, network.id, address, vif.mac)
    there.tend()
    assert there.row(address) == (False, False, False)
    again = there.boot()[0]
    assert there.fixed(again.id) == [address]
    there.tend()
    assert there.row(address) == (True, True, False), "told twice, it is no longer about whose address it is"
    assert there.wire().events == {}


def test_a_release_by_force_frees_what_nobody_leased_at_once_and_the_rest_when_it_is_reported(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    quiet, held = there.boot()[0], there.boot()[0]
    vif = there.vifs(held.id)[0]
    there.tell(DhcpAction.LEASED, network.id, str(vif.addresses[0]), vif.mac)
    there.tend()
    there.wire().release = lambda link, entry: None  # type: ignore[method-assign]  # its client is not heard of
    for server in (quiet, held):
        there.delete(server.id)
    there.tend()
    assert (there.row("10.0.0.2"), there.row("10.0.0.3")) == ((False, False, False), (True, False, True))
    there.tell(DhcpAction.RELEASED, network.id, "10.0.0.3", vif.mac)
    there.tend()
    assert there.row("10.0.0.3") == (False, False, False)


def test_an_address_that_is_leased_at_the_last_moment_is_not_freed_by_force(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    server = there.boot()[0]
    vif = there.vifs(server.id)[0]
    there.delete(server.id)

    def asks(link: Link, entry: Entry) -> None:
        there.tell(DhcpAction.LEASED, network.id, "10.0.0.2", vif.mac)

    there.wire().release = asks  # type: ignore[method-assign]
    there.tend()
    assert there.row("10.0.0.2") == (True, False, True)


def test_a_late_release_by_the_owner_before_does_not_end_the_lease_of_the_next(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", force_release=False)
    network = there.served("private", "10.0.0.0/28")[0]
    macs = []
    for own in (True, False):
        server = there.boot()[0]
        vif = there.vifs(server.id)[0]
        macs.append(vif.mac)
        there.tell(DhcpAction.LEASED, network.id, "10.0.0.2", vif.mac)
        there.tend()
        there.delete(server.id)
        there.tell(DhcpAction.RELEASED, network.id, "10.0.0.2", macs[0])
        there.tend()
        assert there.row("10.0.0.2") == ((False, False, False) if own else (True, False, True))


@pytest.mark.parametrize("what", list(DhcpAction))
@pytest.mark.parametrize("address", ["10.0.0.2", "10.0.0.9", "10.0.0.0", "192.0.2.1"])
def test_forged_and_late_stories_change_nothing(cloud: Cloud, what: DhcpAction, address: str) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    there.boot()
    before = there.row("10.0.0.2")
    there.tell(what, network.id, address, "02:16:3e:00:00:00")
    there.tell(what, "00000000-0000-4000-8000-000000000000", address, "02:16:3e:00:00:00")
    there.tend()
    assert (there.row("10.0.0.2"), there.wrong(), there.wire().events) == (before, [], {})


def test_names_are_unique_in_a_network_and_the_older_server_keeps_its_own(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    gone, old = there.boot(name="x")[0], there.boot(name="Web Server")[0]
    there.delete(gone.id)
    there.settle()
    there.forward(1)
    new = there.boot(name="web-server")[0]
    assert there.fixed(new.id) < there.fixed(old.id)
    there.tend()
    served = there.wire().serving[network.id]
    assert served.dhcp is not None
    names = {entry.vif_id: entry.hostname for entry in served.dhcp.entries}
    assert names == {
        there.vifs(old.id)[0].id: "web-server",
        there.vifs(new.id)[0].id: f"web-server-{new.id[:8]}",
    }


def test_only_a_servers_first_interface_gets_the_gateway(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    made = [there.served(f"net{n}", f"10.{n}.0.0/28", bridge=f"br{n}")[0] for n in (1, 2)]
    server = there.boot()[0]
    there.tend()
    routes = {one.id: [entry.routes for entry in entries(there, one.id)] for one in made}
    assert routes == {made[0].id: [True], made[1].id: [False]}
    assert [vif.place for vif in there.vifs(server.id)] == [0, 1]


def test_an_interface_is_given_one_address_and_keeps_that_which_it_has_leased(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", force_release=False)
    network = there.served("private", "10.0.0.0/28")[0]
    server = there.boot()[0]
    there.settle()
    (vif,) = there.vifs(server.id)
    there.tell(DhcpAction.LEASED, network.id, "10.0.0.2", vif.mac)
    with there.compute.engine.begin() as conn:
        fixed_ips.add(conn, server.id, "demo", network.id, there.clock.time)
    there.settle()
    assert told(there, network.id) == {"10.0.0.2": vif.mac}
    there.tell(DhcpAction.RELEASED, network.id, "10.0.0.2", vif.mac)
    there.tell(DhcpAction.LEASED, network.id, "10.0.0.3", vif.mac)
    there.tend(thorough=True)
    assert told(there, network.id) == {"10.0.0.3": vif.mac}
    with there.compute.engine.begin() as conn:
        fixed_ips.remove(conn, server.id, "10.0.0.3", there.clock.time)
    there.settle()
    assert told(there, network.id) == {"10.0.0.2": vif.mac}


def entries(there: Books, network_id: str) -> tuple[object, ...]:
    served: NetworkServices = there.wire().serving[network_id]
    return served.dhcp.entries if served.dhcp is not None else ()


def test_ipv6_is_announced_and_the_gateway_becomes_the_bridges_own(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", use_ipv6=True)
    network = there.served("private", "10.0.0.0/28")[0]
    assert there.wire().serving[network.id].prefix_v6 == IPv6Network("fd00::/64")
    assert network.gateway_v6 == IPv6Address("fe80::1")
    assert there.wire().links[network.id].gateway_v6 is not None


def test_each_network_gets_the_next_ipv6_prefixes_that_are_free(cloud: Cloud) -> None:
    there = cloud(manager="vlan", use_ipv6=True)
    asked = IPv6Network("fd00:0:0:1::/64")
    first = there.make("one", "10.1.0.0/24")
    there.make("asked", "10.2.0.0/24", cidr_v6=asked)
    two = there.make("two", "10.3.0.0/24", count=2, size=16)
    after = there.make("after", "10.4.0.0/24")
    found = [network.cidr_v6 for network in (*first, *two, *after)]
    assert found == [IPv6Network(f"fd00:0:0:{place}::/64") for place in (0, 2, 3, 4)]
    with pytest.raises(Conflict, match="cidr_v6 fd00:0:0:1::/64 already exists"):
        there.make("again", "10.5.0.0/24", cidr_v6=asked)


def test_translation_is_that_of_the_hosts_own_networks(cloud: Cloud) -> None:
    there = cloud(
        manager="flat_dhcp",
        public_interface="eth0",
        source=IPv4Address("192.0.2.9"),
        kept=IPv4Network("10.128.0.0/24"),
        metadata=("192.0.2.8", 8775),
        vpn_address=IPv4Address("192.0.2.1"),
    )
    network = there.served("private", "10.0.0.0/28")[0]
    there.served("tunnel", "10.4.0.0/28", "vlan")
    there.pool()
    address = there.fixed(there.boot()[0].id)[0]
    got = there.floating(fixed_address=address)
    there.tend()
    nat = there.wire().nat
    assert nat is not None
    assert nat.forwards == (Forward(IPv4Address(got.address), IPv4Address(address), "eth0"),)
    assert nat.vpns == (Vpn(IPv4Address("10.4.0.2"), IPv4Address("192.0.2.1"), 1000),)
    assert (nat.fixed_range, nat.interface) == (IPv4Network("10.0.0.0/8"), "eth0")
    assert (nat.source, nat.kept) == (IPv4Address("192.0.2.9"), IPv4Network("10.128.0.0/24"))
    assert nat.metadata == ("192.0.2.8", 8775)
    assert nat.bridges == (network.bridge, "br101")
    there.tend(TWO, thorough=True)
    assert there.wire(TWO).nat is not None
    assert (there.wire(TWO).nat.forwards, there.wire(TWO).nat.vpns, there.wire(TWO).nat.bridges) == ((), (), ())


@pytest.mark.parametrize("routed", [False, True])
def test_only_networks_of_one_project_reach_each_other_unless_all_may(cloud: Cloud, routed: bool) -> None:
    there = cloud(manager="vlan", route_between_projects=routed)
    made = there.served("net", "10.0.0.0/24", count=4, size=16)
    for place, project in enumerate(("p1", "p2", "p1")):
        with there.compute.engine.begin() as conn:
            networks.associate(conn, made[place].id, project)
    there.tend(thorough=True)
    bridges = [one.bridge for one in made]
    assert there.wire().nat is not None
    expected = frozenset(bridges) if routed else frozenset({bridges[0], bridges[2]})
    assert there.wire().nat.between == (expected,)


def test_a_floating_address_is_where_its_fixed_one_is_served(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", public_interface="eth0", down_seconds=60)
    there.served("private", "10.0.0.0/28")
    there.pool()
    got = there.floating(fixed_address=there.fixed(there.boot()[0].id)[0])
    there.tend()
    assert forwards(there, ONE) == [got.address]
    there.forward(61)
    there.tend(TWO)
    there.tend(ONE)
    assert (forwards(there, ONE), forwards(there, TWO)) == ([], [got.address])
    with there.compute.engine.begin() as conn:
        floating_ips.disassociate(conn, floating_ips.get(conn, got.id), there.clock.time)
    there.tend(TWO)
    assert forwards(there, TWO) == [], "the host that has it now is told, not the first one"


def forwards(there: Books, host: str) -> list[str]:
    nat = there.wire(host).nat
    return [] if nat is None else [str(one.floating) for one in nat.forwards]


def test_servers_and_addresses_cost_no_statements_of_their_own(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/22")[0]
    spent = {count: cost(there, lambda count=count: there.boot(count)) for count in (1, 30)}  # type: ignore[misc]
    assert spent[1]["boot"] == spent[30]["boot"]
    assert spent[1]["tend"] == spent[30]["tend"]
    assert len(told(there, network.id)) == 31


def cost(there: Books, boot: Callable[[], object]) -> dict[str, int]:
    """Statements of a boot, without the work of its compute service, and of the beat after it."""
    settle, there.place.settle = there.place.settle, lambda: None  # type: ignore[method-assign]
    with there.counted() as booting:
        boot()
    there.place.settle = settle  # type: ignore[method-assign]
    with there.counted() as tending:
        there.tend()
    return {"boot": len(booting), "tend": len(tending)}


def test_a_beat_costs_as_much_however_large_its_networks_are(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    spent = []
    for cidr in ("10.0.0.0/28", "10.1.0.0/22"):
        there.served(cidr.replace("/", "-"), cidr)
        with there.counted() as sent:
            there.tend(thorough=True)
        spent.append(len(sent))
    assert spent[0] == spent[1]


def test_a_beat_without_work_is_one_statement(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    there.boot()
    there.settle()
    there.clock.forward(seconds=3)
    with there.counted() as sent:
        there.tend()
    assert len(sent) == 1, sent
    heard = f"host = '{ONE}' AND beat_at = '{there.clock.time.isoformat()}'"
    assert there.place.count("compute_network_hosts", heard) == 1


def test_a_beat_without_calls_still_frees_addresses_that_waited_too_long(cloud: Cloud) -> None:
    there = cloud(manager="vlan", timeout_seconds=600, force_release=False)
    network = there.served("private", "10.0.0.0/28")[0]
    server = there.boot()[0]
    held = there.vifs(server.id)[0]
    there.settle()
    there.tell(DhcpAction.LEASED, network.id, str(held.addresses[0]), held.mac)
    there.tend()
    there.delete(server.id)
    there.settle()
    waits = "server_id IS NOT NULL AND vif_id IS NULL"
    for seconds, left in ((599, 1), (2, 0)):
        there.forward(seconds)
        there.tend()
        assert there.place.count("compute_addresses", waits) == left


def test_a_beat_takes_the_networks_of_a_host_that_falls_silent(cloud: Cloud) -> None:
    there = cloud(manager="vlan", down_seconds=60)
    network = there.served("private", "10.0.0.0/28")[0]
    there.tend(TWO)
    there.forward(61)
    there.tend(TWO)
    assert there.network(network.id).host == TWO
    assert set(there.wire(TWO).serving) == {network.id}, "it is served in the same beat"


@pytest.mark.parametrize("network_id", ["no-id", "\0", "ffffffff-0000-4000-8000-00000000000g"])
def test_a_damaged_event_is_set_aside_and_stops_no_network(cloud: Cloud, network_id: str) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    there.settle()
    server = there.boot()[0]
    held = there.vifs(server.id)[0]
    address = str(held.addresses[0])
    there.tell(DhcpAction.LEASED, network_id, "10.0.0.9", held.mac)
    there.tell(DhcpAction.LEASED, network.id, address, held.mac)
    with capture_logs() as seen:
        there.tend()
    assert told(there, network.id) == known(there, network.id) != {}
    assert there.row(address) == (True, True, True), "the event after it was recorded"
    assert there.wire().happened() == ()
    (aside,) = [one for one in seen if one["event"].startswith("DHCP event set aside")]
    assert repr(network_id) in aside["said"]


def test_an_event_that_loses_to_others_is_recorded_later(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    there.settle()
    first, second = (there.vifs(server.id)[0] for server in there.boot(2))
    for vif in (first, second):
        there.tell(DhcpAction.LEASED, network.id, str(vif.addresses[0]), vif.mac)
    with there.compute.engine.begin() as conn:
        lock = "SELECT FROM compute_addresses WHERE host(address) = %(address)s FOR UPDATE"
        conn.exec_driver_sql(lock, {"address": str(first.addresses[0])})
        there.tend()
        assert there.row(str(second.addresses[0]))[2]
        assert len(there.wire().happened()) == 1
    there.tend()
    assert there.row(str(first.addresses[0]))[2]
    assert there.wire().happened() == ()


@pytest.mark.parametrize("verb", ["happened", "serve", "translate", "unchanged"])
def test_an_unexpected_error_of_one_step_stops_no_other(cloud: Cloud, verb: str) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.served("private", "10.0.0.0/28")[0]
    there.settle()
    there.boot(2)
    there.wire().fails = Breaks(verb)
    with capture_logs():
        there.tend()
    assert there.place.count("compute_network_calls") == (0 if verb in ("happened", "unchanged") else 1)
    there.tend()
    assert told(there, network.id) == known(there, network.id) != {}


class Breaks(Fails):
    """Fails at a verb with an error that no driver should raise."""

    def __call__(self, verb: str) -> None:
        try:
            super().__call__(verb)
        except NetworkError:
            raise OSError("no such file") from None
