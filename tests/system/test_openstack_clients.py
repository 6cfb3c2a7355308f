"""The unmodified OpenStack clients against a running stack, with the clouds.yaml that it has made."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import openstack
import pytest
import yaml

from tests.system.api_client import Api, host_lease
from tests.system.openstack_shells import Said, Shells
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.filterwarnings("ignore")]

Command = Callable[..., Said]
GPUS = 'resource_type=physical:host,min=1,max=1,hypervisor_properties=[">=", "$vcpus", "4"],resource_properties='
PROGRAM = str(Path(sys.executable).with_name("openstack"))


def minute(ahead: float) -> str:
    """A time as the clients spell it: UTC, in minutes."""
    return f"{datetime.now(UTC) + timedelta(minutes=ahead):%Y-%m-%d %H:%M}"


@pytest.fixture(scope="module")
def shells(stack: Stack) -> Iterator[Callable[[str], Shells]]:
    """A process for each cloud: what the clients keep in memory is one user's."""
    known: dict[str, Shells] = {}

    def of(cloud: str) -> Shells:
        if cloud not in known:
            known[cloud] = Shells({**stack.environ, "OS_CLOUD": cloud})
        return known[cloud]

    yield of
    for one in known.values():
        one.close()


@pytest.fixture(scope="module")
def boss(shells: Callable[[str], Shells]) -> Command:
    """`openstack` for the administrator."""
    return lambda *words: shells("climate").run("openstack", *words)


@pytest.fixture(scope="module")
def demo(shells: Callable[[str], Shells]) -> Command:
    """`openstack` for a member of the project demo."""
    return lambda *words: shells("climate-demo").run("openstack", *words)


@pytest.fixture(scope="module")
def blazar(shells: Callable[[str], Shells], stack: Stack) -> Command:
    """`blazar`, which knows no clouds.yaml."""
    entry = yaml.safe_load((stack.home / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]["climate"]["auth"]
    words = [word for name, value in entry.items() for word in (f"--os-{name.replace('_', '-')}", value)]
    return lambda *more: shells("climate").run("blazar", "--os-auth-type", "password", *words, *more)


@pytest.fixture(scope="module")
def held(member: Api) -> Iterator[str]:
    """The id of a reservation of one host, whose lease is ACTIVE."""
    made = member.ask("POST", "/v1/leases", host_lease("clients", "now", time.time() + 7200)).json()["lease"]
    path = f"/v1/leases/{made['id']}"
    await_so(lambda: member.read(path)["lease"]["status"] == "ACTIVE", 60, "the start of a lease")
    yield made["reservations"][0]["id"]
    member.ask("DELETE", path)
    await_so(lambda: member.ask("GET", path).status_code == 404, 60, "the end of a lease")


def test_processes_of_their_own(stack: Stack) -> None:
    """As typed in a terminal, with nothing but OS_CLOUD and OS_CLIENT_CONFIG_FILE in the environment."""
    token = stack.command(PROGRAM, "token", "issue", "-f", "json", more={"OS_CLOUD": "climate-demo"})
    assert token.returncode == 0, token.stderr
    assert set(json.loads(token.stdout)) >= {"expires", "id", "project_id", "user_id"}
    leases = stack.command(PROGRAM, "reservation", "lease", "list", "-f", "json", more={"OS_CLOUD": "climate"})
    assert leases.returncode == 0, leases.stderr
    assert isinstance(json.loads(leases.stdout), list)


def test_identity(boss: Command, demo: Command) -> None:
    catalog = {entry["Type"] for entry in boss("catalog", "list", "-f", "json").json()}
    assert catalog == {"identity", "compute", "reservation", "image", "network", "volumev3"}
    assert {project["Name"] for project in boss("project", "list", "-f", "json").json()} >= {"admin", "demo"}
    refused = demo("reservation", "host", "create", "std-2")
    assert refused.code == 1
    assert "Policy doesn't allow" in refused.err, refused


def test_hosts(boss: Command, blazar: Command) -> None:
    made = boss("reservation", "host", "create", "std-1", "--extra", "rack=r1", "--extra", "ssd=yes", "-f", "json")
    host = made.json()
    assert (host["hypervisor_hostname"], host["rack"]) == ("std-1", "r1")
    try:
        listed = boss("reservation", "host", "list", "-f", "json").json()
        assert {row["hypervisor_hostname"] for row in listed} >= {"gpu-1", "gpu-4", "std-1"}
        assert boss("reservation", "host", "set", "std-1", "--extra", "rack=r2").code == 0
        assert blazar("host-unset", "std-1", "--extra", "ssd").code == 0
        shown = boss("reservation", "host", "show", "std-1", "-f", "json").json()
        assert shown["rack"] == "r2"
        assert "ssd" not in shown
        again = boss("reservation", "host", "create", "std-1")
        assert again.code == 1
        assert re.search(r"ERROR: .*std-1", again.err), again
    finally:
        assert boss("reservation", "host", "delete", "std-1").code == 0
    gone = boss("reservation", "host", "show", "std-1")
    assert gone.code == 1
    assert "std-1" in gone.err


def test_properties(boss: Command) -> None:
    properties = boss("reservation", "host", "property", "list", "-f", "json").json()
    assert "gpu_count" in {row["property"] for row in properties}
    shown = boss("reservation", "host", "property", "show", "gpu_count", "-f", "json").json()
    assert "4" in str(shown["property_values"]), shown
    assert boss("reservation", "host", "property", "set", "gpu_count", "--private").code == 0
    hidden = boss("reservation", "host", "property", "list", "-f", "json").json()
    assert "gpu_count" not in {row["property"] for row in hidden}
    assert boss("reservation", "host", "property", "set", "gpu_count", "--public").code == 0


def test_a_lease(demo: Command, boss: Command, blazar: Command) -> None:
    dates = ("--start-date", minute(600), "--end-date", minute(660))
    made = demo("reservation", "lease", "create", "typed", *dates, "--reservation", GPUS, "-f", "json").json()
    assert (made["name"], made["status"]) == ("typed", "PENDING")
    assert "typed" in {row["name"] for row in demo("reservation", "lease", "list", "-f", "json").json()}
    assert demo("reservation", "lease", "set", "typed", "--name", "typed-2").code == 0
    assert demo("reservation", "lease", "set", "typed-2", "--prolong-for", "2h").code == 0
    shown = demo("reservation", "lease", "show", "typed-2", "-f", "json").json()
    length = datetime.fromisoformat(shown["end_date"]) - datetime.fromisoformat(shown["start_date"])
    assert length == timedelta(hours=3)
    assert demo("reservation", "lease", "set", made["id"], "--end-date", minute(640)).code == 0
    _check_allocations(boss, made["id"])
    assert "typed-2" in blazar("lease-list").out
    assert demo("reservation", "lease", "delete", "typed-2").code == 0
    assert demo("reservation", "lease", "show", made["id"]).code == 1


def _check_allocations(boss: Command, lease_id: str) -> None:
    rows = boss("reservation", "allocation", "list", "host", "--lease-id", lease_id, "-f", "json").json()
    holding = [row for row in rows if lease_id in str(row["reservations"])]
    assert len(holding) == 1, rows
    shown = boss("reservation", "allocation", "show", "host", str(holding[0]["resource_id"]), "-f", "json").json()
    assert lease_id in str(shown["reservations"])


def test_refusals_are_reported_in_the_peers_words(demo: Command) -> None:
    dates = ("--start-date", minute(600), "--end-date", minute(660))
    greedy = GPUS.replace("min=1,max=1", "min=900,max=900")
    refused = demo("reservation", "lease", "create", "greedy", *dates, "--reservation", greedy)
    assert refused.code == 1
    assert "ERROR: Not enough hosts available" in refused.err, refused
    past = ("--start-date", minute(-600), "--end-date", minute(600))
    refused = demo("reservation", "lease", "create", "past", *past, "--reservation", GPUS)
    assert refused.code == 1
    assert "ERROR: Start date must be later than current date" in refused.err, refused
    nobodys = str(uuid4())
    assert f"Object with {{'lease_id': '{nobodys}'}} not found" in demo("reservation", "lease", "show", nobodys).err


def test_a_server_on_what_is_reserved(demo: Command, held: str) -> None:
    image = demo("image", "list", "-f", "json").json()[0]["Name"]
    flavor = demo("flavor", "list", "-f", "json").json()[0]["Name"]
    network = demo("network", "list", "-f", "json").json()[0]["Name"]
    what = ("--flavor", flavor, "--image", image, "--network", network)
    made = demo("server", "create", *what, "--hint", f"reservation={held}", "--wait", "typed", "-f", "json").json()
    assert made["status"] == "ACTIVE"
    assert made["addresses"], made
    assert "typed" in {row["Name"] for row in demo("server", "list", "-f", "json").json()}
    assert demo("server", "show", "typed", "-f", "json").json()["id"] == made["id"]
    assert demo("server", "delete", "--wait", "typed").code == 0
    assert "typed" not in {row["Name"] for row in demo("server", "list", "-f", "json").json()}


def test_a_server_that_waits_for_its_lease(demo: Command) -> None:
    image = demo("image", "list", "-f", "json").json()[0]["ID"]
    flavor = demo("flavor", "list", "-f", "json").json()[0]["ID"]
    params = json.dumps({"name": "sleeper", "start": minute(300), "end": minute(360), "on_end": "delete"})
    hints = ("--hint", "reserved=True", "--hint", f"lease_params={params}")
    made = demo("server", "create", "--flavor", flavor, "--image", image, *hints, "sleeper", "-f", "json").json()
    is_reserved = lambda: demo("server", "show", made["id"], "-f", "json").json()["status"] == "RESERVED"  # noqa: E731
    await_so(is_reserved, 60, "the server's sleep")
    assert demo("reservation", "lease", "delete", "sleeper").code == 0
    await_so(lambda: demo("server", "show", made["id"]).code == 1, 60, "the server's end")


def test_room_for_servers(demo: Command, boss: Command, stack: Stack) -> None:
    room = "resource_type=virtual:instance,vcpus=1,memory_mb=64,disk_gb=1,amount=1,affinity=None,resource_properties="
    lease = demo("reservation", "lease", "create", "room", "--end-date", minute(60), "--reservation", room)
    assert lease.code == 0, lease
    made = demo("reservation", "lease", "show", "room", "-f", "json").json()
    one = json.loads(made["reservations"])
    assert (one["flavor_id"], one["amount"], one["affinity"]) == (one["id"], 1, None)
    is_active = lambda: demo("reservation", "lease", "show", "room", "-f", "json").json()["status"] == "ACTIVE"  # noqa: E731
    await_so(is_active, 60, "the start of the lease")
    image = demo("image", "list", "-f", "json").json()[0]["Name"]
    network = demo("network", "list", "-f", "json").json()[0]["Name"]
    what = ("--flavor", one["flavor_id"], "--image", image, "--network", network)
    server = demo("server", "create", *what, "--wait", "tenant", "-f", "json").json()
    assert server["status"] == "ACTIVE", server
    assert demo("server", "create", *what, "--wait", "too-many").code == 1, "there was one slot"
    assert boss("server", "create", *what, "--wait", "stranger").code == 1, "it is another project's"
    boss("server", "delete", "--wait", "stranger")
    demo("server", "delete", "--wait", "too-many")
    assert demo("reservation", "lease", "delete", "room").code == 0
    await_so(lambda: demo("server", "show", server["id"]).code == 1, 60, "the servers' end")
    await_so(lambda: demo("reservation", "lease", "show", made["id"]).code == 1, 60, "the lease's end")
    assert one["flavor_id"] not in boss("flavor", "list", "--all", "-f", "value").out


def test_a_boot_on_somebody_elses_reservation_is_refused(boss: Command, held: str) -> None:
    image = boss("image", "list", "-f", "json").json()[0]["ID"]
    what = ("--flavor", boss("flavor", "list", "-f", "json").json()[0]["ID"], "--image", image)
    refused = boss("server", "create", *what, "--hint", f"reservation={held}", "thief")
    assert refused.code == 1
    assert held in refused.err, refused


def test_the_sdk(stack: Stack, held: str) -> None:
    """openstacksdk, in this process: the same cloud by name."""
    config = openstack.config.OpenStackConfig(config_files=[str(stack.home / "clouds.yaml")])
    cloud: Any = openstack.connection.Connection(config=config.get_one("climate-demo"))
    try:
        leases = cloud.reservation.get("/leases").json()["leases"]
        assert "clients" in {lease["name"] for lease in leases}
        image, flavor = next(cloud.image.images()), next(cloud.compute.flavors())
        network = next(cloud.network.networks())
        made = cloud.compute.create_server(
            name="by-sdk",
            image_id=image.id,
            flavor_id=flavor.id,
            networks=[{"uuid": network.id}],
            scheduler_hints={"reservation": held},
        )
        server = cloud.compute.wait_for_server(made, wait=60)
        assert server.status == "ACTIVE"
        cloud.compute.delete_server(server)
        cloud.compute.wait_for_delete(server, wait=60)
    finally:
        cloud.close()


def test_floating_ips(boss: Command, demo: Command, blazar: Command) -> None:
    """From the administrator's word to the end of a lease: promised, there while it lasts, and free again."""
    outside = boss("network", "list", "--external", "-f", "json").json()
    (network,) = (row["ID"] for row in outside if row["Name"] == "public")
    ids = []
    for last in (202, 203, 204):
        made = boss("reservation", "floatingip", "create", network, f"198.51.100.{last}", "-f", "json").json()
        assert made["floating_network_id"] == network
        ids.append(made["id"])
    refused = blazar("floatingip-create", network, "198.51.100.1")
    assert (refused.code, "which the cloud allocates itself" in refused.err) == (1, True), refused
    listed = demo("reservation", "floatingip", "list", "-f", "json").json()
    assert {row["floating_ip_address"] for row in listed} == {f"198.51.100.{last}" for last in (202, 203, 204)}
    wanted = f'resource_type=virtual:floatingip,network_id={network},amount=2,required_floatingips=["198.51.100.204"]'
    create = ("reservation", "lease", "create", "--reservation", wanted, "--end-date", minute(60))
    assert demo(*create, "outside").code == 0
    shown = lambda: demo("reservation", "lease", "show", "outside", "-f", "json").json()  # noqa: E731
    await_so(lambda: shown()["status"] == "ACTIVE", 60, "the start of the lease")
    one = json.loads(shown()["reservations"])
    assert one["allocated_floatingips"] == ["198.51.100.202", "198.51.100.204"]
    own = demo("floating", "ip", "list", "-f", "json").json()
    assert {row["Floating IP Address"] for row in own} == set(one["allocated_floatingips"])
    again = demo(*create, "again")
    assert (again.code, "unavailable are 198.51.100.204" in again.err) == (1, True), again
    grow = ("reservation", "lease", "set", "--reservation", f"id={one['id']},amount=3", "outside")
    assert demo(*grow).code == 0
    await_so(lambda: len(demo("floating", "ip", "list", "-f", "json").json()) == 3, 60, "the third address")
    kept = blazar("floatingip-delete", ids[0])
    assert (kept.code, "1 lease counts on it" in kept.err) == (1, True), kept
    assert demo("reservation", "lease", "delete", "outside").code == 0
    await_so(lambda: not demo("floating", "ip", "list", "-f", "json").json(), 60, "the end of the lease")
    for known in ids:
        assert boss("reservation", "floatingip", "delete", known).code == 0
    assert blazar("floatingip-list", "-f", "json").json() == []
