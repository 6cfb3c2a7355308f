"""The life of a server, by the openstack client."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.api.compute.clients.conftest import NODES, Person

pytestmark = pytest.mark.slow

WHAT = "--flavor m1.tiny --image demo"


@pytest.fixture
def server(demo: Person) -> Iterator[str]:
    """The name of a server that runs; gone afterwards."""
    name = f"s-{uuid4().hex[:8]}"
    demo(f"server create {WHAT} {name}")
    demo.sees(name, "ACTIVE")
    yield name
    demo(f"server delete {name}")


def test_a_server_is_waited_for(demo: Person) -> None:
    made = demo.read(f"server create {WHAT} --network private --property a=b --wait w1")
    assert (made["status"], made["properties"]) == ("ACTIVE", {"a": "b"})
    assert list(made["addresses"]) == ["private"]
    assert made["image"].startswith("demo")
    assert "w1" in demo.names("server list --long")
    demo("server delete --wait w1")
    assert "w1" not in demo.names("server list")


@pytest.mark.parametrize(
    ("there", "status", "back"),
    [("stop", "SHUTOFF", "start"), ("pause", "PAUSED", "unpause"), ("suspend", "SUSPENDED", "resume")],
)
def test_there_and_back(demo: Person, server: str, there: str, status: str, back: str) -> None:
    demo(f"server {there} {server}")
    demo.sees(server, status)
    assert demo.names(f"server list --status {status}") == [server]
    assert "409" in demo.refused(f"server {there} {server}")
    demo(f"server {back} {server}")
    demo.sees(server, "ACTIVE")


def test_shelving(demo: Person, boss: Person, server: str) -> None:
    before = demo.read(f"server show {server}")
    demo(f"server shelve {server}")
    demo.sees(server, "SHELVED_OFFLOADED")
    assert not boss.read(f"server show {before['id']}")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    demo(f"server unshelve {server}")
    demo.sees(server, "ACTIVE")
    assert demo.read(f"server show {server}")["addresses"] == before["addresses"]


@pytest.mark.parametrize("kind", ["--soft", "--hard"])
def test_rebooting(demo: Person, server: str, kind: str) -> None:
    demo(f"server reboot {kind} {server}")
    demo.sees(server, "ACTIVE")
    assert demo.names(f"server event list {server}", "Action")[0] == "reboot"


def test_resizing(demo: Person, server: str) -> None:
    for end, flavor in (("revert", "m1.tiny"), ("confirm", "m1.small")):
        demo(f"server resize --flavor m1.small {server}")
        demo.sees(server, "VERIFY_RESIZE")
        demo(f"server resize {end} {server}")
        demo.sees(server, "ACTIVE")
        assert demo.read(f"server show {server}")["flavor"]["name"] == flavor
    assert demo.refused(f"server resize confirm {server}")


def test_rebuilding(demo: Person, server: str) -> None:
    demo(f"server rebuild --image demo --name {server} --property c=d {server}")
    demo.sees(server, "ACTIVE")
    assert demo.read(f"server show {server}")["properties"] == {"c": "d"}


def test_locking(demo: Person, boss: Person, server: str) -> None:
    demo("server lock --reason", "do not touch", server)
    assert demo.read(f"server show {server}")["locked"] is True
    assert "409" in demo.refused(f"server stop {server}")
    demo(f"server unlock {server}")
    number = demo.read(f"server show {server}")["id"]
    boss(f"server lock {number}")
    assert "409" in demo.refused(f"server delete {server}")
    boss(f"server unlock {number}")


def test_images_and_console(demo: Person, server: str) -> None:
    made = demo.read(f"server image create --name of-{server} {server}")
    assert made["name"] == f"of-{server}"
    demo.sees(server, "ACTIVE")
    assert demo.read(f"image show of-{server}")["status"] == "active"
    demo(f"image delete of-{server}")
    assert server in demo(f"console log show {server}")


def test_what_was_asked_of_a_server(demo: Person, server: str) -> None:
    demo(f"server stop {server}")
    demo.sees(server, "SHUTOFF")
    events = demo.read(f"server event list {server}")
    assert [event["Action"] for event in events] == ["stop", "create"]
    shown = demo.read(f"server event show {server}", events[0]["Request ID"])
    assert shown["action"] == "stop"


def test_names_and_properties(demo: Person, server: str) -> None:
    demo(f"server set --property a=b --property c=d --name {server}-new --description", "what it is for", server)
    demo(f"server unset --property a {server}-new")
    shown = demo.read(f"server show {server}-new")
    assert (shown["properties"], shown["description"]) == ({"c": "d"}, "what it is for")
    demo(f"server set --name {server} {server}-new")


def test_several_at_once(demo: Person) -> None:
    demo(f"server create {WHAT} --min 2 --max 3 m")
    names = [f"m-{place}" for place in (1, 2, 3)]
    try:
        for name in names:
            demo.sees(name, "ACTIVE")
        assert sorted(demo.names("server list --name ^m-")) == names
        assert len(demo.names("server list --name ^m- --limit 2")) == 2
    finally:
        demo(f"server delete {' '.join(names)}")


def test_a_group_keeps_its_servers_apart(demo: Person, boss: Person) -> None:
    group = demo.read("server group create --policy anti-affinity apart")["id"]
    names = [f"apart-{place}" for place in range(3)]
    for name in names:
        demo(f"server create {WHAT} --hint group={group} {name}")
    try:
        for name in names[:2]:
            demo.sees(name, "ACTIVE")
        found = boss.read("server list --all-projects --long --name ^apart-")
        assert sorted(row["Host"] for row in found if row["Status"] == "ACTIVE")
        demo.sees(names[2], "ERROR")
        assert "No valid host" in str(demo.read(f"server show {names[2]}")["fault"])
        assert len(demo.read("server group show apart")["members"]) >= 2
    finally:
        demo(f"server delete {' '.join(names)}")
        demo("server group delete apart")


def test_an_administrator_names_the_node(boss: Person, demo: Person) -> None:
    (service,) = boss.names("compute service list", "Host")
    for node in NODES:
        boss(f"server create {WHAT} --availability-zone nova:{service}:{node} on-{node}")
        boss.sees(f"on-{node}", "ACTIVE")
        assert boss.read(f"server show on-{node}")["OS-EXT-SRV-ATTR:hypervisor_hostname"] == node
    boss("server delete on-n1 on-n2")
    refused = demo.refused(f"server create {WHAT} --availability-zone nova:{service}:n1 mine")
    assert "40" in refused


def test_who_finds_no_host_reads_why(demo: Person) -> None:
    assert "availability zone" in demo.refused(f"server create {WHAT} --availability-zone nowhere lost")
    demo("server create --flavor m1.xlarge --image demo lost")
    demo.sees("lost", "ERROR")
    fault = str(demo.read("server show lost")["fault"])
    assert "No valid host was found" in fault
    assert "RamFilter" in fault
    assert not any(node in fault for node in NODES)
    demo("server delete --force lost")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("server create --flavor m9 --image demo x", "No Flavor found for m9"),
        ("server create --flavor m1.tiny --image nothing x", "No Image found for nothing"),
        (f"server create {WHAT} --key-name nobodys x", "nobodys"),
        (f"server create {WHAT} --hint group=none x", "group"),
        (f"server create {WHAT} --hint reservation={uuid4()} x", "reservation"),
        (f"server create {WHAT} --min 3 --max 2 x", "min"),
        ("server show nobody", "No Server found for nobody"),
        ("server list --status NONSENSE", "invalid choice"),
        ("server list --all-projects", "403"),
    ],
)
def test_refusals_are_readable(demo: Person, words: str, says: str) -> None:
    said = demo.refused(words)
    assert says in said
    assert "Traceback" not in said
    assert demo.names("server list --name ^x$") == []


def test_migrating_and_the_list_of_migrations(demo: Person, boss: Person, server: str) -> None:
    before = boss.read(f"server show {demo.read(f'server show {server}')['id']}")
    server_id, node = before["id"], before["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    other = next(name for name in NODES if name != node)
    boss(f"--os-compute-api-version 2.56 server migrate --host {other} {server_id}")
    demo.sees(server, "VERIFY_RESIZE")
    assert boss.read(f"server show {server_id}")["OS-EXT-SRV-ATTR:hypervisor_hostname"] == other
    demo(f"server migration confirm {server_id}")
    demo.sees(server, "ACTIVE")
    boss(f"server migrate --wait {server_id}")
    demo(f"server migration revert {server_id}")
    demo.sees(server, "ACTIVE")
    (back, there) = boss.read(f"--os-compute-api-version 2.59 server migration list --server {server_id}")
    assert (there["Status"], there["Source Node"], there["Dest Node"]) == ("confirmed", node, other)
    assert (back["Status"], back["Type"], back["Source Node"]) == ("reverted", "migration", other)
    assert "403" in demo.refused(f"server migrate {server}")


def test_evacuating_needs_a_host_that_is_down(demo: Person, boss: Person, server: str) -> None:
    server_id = demo.read(f"server show {server}")["id"]
    assert "still in use" in boss.refused(f"--os-compute-api-version 2.79 server evacuate {server_id}")
