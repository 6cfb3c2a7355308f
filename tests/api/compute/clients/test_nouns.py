"""What surrounds servers, by the openstack client: made, listed, shown, changed and deleted."""

from pathlib import Path

import pytest

from tests.api.compute.clients.conftest import NODES, Person

pytestmark = pytest.mark.slow


def test_flavors(boss: Person, demo: Person) -> None:
    assert "m1.tiny" in demo.names("flavor list")
    made = boss.read("flavor create f9 --ram 64 --vcpus 2 --disk 3 --property a:b=c --description old --private")
    assert (made["ram"], made["vcpus"], made["disk"], made["properties"]) == (64, 2, 3, {"a:b": "c"})
    assert "f9" not in demo.names("flavor list")
    assert "f9" in boss.names("flavor list --all")
    boss("flavor set f9 --property d=e --description new")
    boss("flavor set f9 --project demo")
    assert "f9" in demo.names("flavor list")
    boss("flavor unset f9 --property a:b")
    shown = boss.read("flavor show f9")
    assert (shown["properties"], shown["description"]) == ({"d": "e"}, "new")
    boss("flavor unset f9 --project demo")
    assert "f9" not in demo.names("flavor list")
    assert "409" in boss.refused("flavor create f9 --ram 64 --vcpus 1 --disk 1")
    assert "403" in demo.refused("flavor delete m1.tiny")
    boss("flavor delete f9")
    assert "No Flavor found for f9" in boss.refused("flavor show f9")


def test_images(boss: Person, demo: Person, tmp_path: Path) -> None:
    assert "demo" in demo.names("image list")
    content = tmp_path / "content"
    content.write_bytes(b"what it starts from")
    made = demo.read("image create i9 --property a=b --min-ram 1 --file", str(content))
    assert made["name"] == "i9"
    shown = demo.read("image show i9")
    assert (shown["status"], shown["size"]) == ("active", content.stat().st_size)
    assert shown["properties"]["a"] == "b"
    demo("image set i9 --property c=d --name i10")
    demo("image unset i10 --property a")
    properties = demo.read("image show i10")["properties"]
    assert properties["c"] == "d"
    assert "a" not in properties
    demo("image save i10 --file", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == content.read_bytes()
    assert "403" in demo.refused("image set i10 --public")
    demo("image delete i10")
    assert "i10" not in demo.names("image list")


def test_aggregates(boss: Person, demo: Person) -> None:
    assert "freepool" in boss.names("aggregate list")
    made = boss.read("aggregate create a9 --zone z9 --property ssd=true")
    assert (made["name"], made["availability_zone"]) == ("a9", "z9")
    boss("aggregate add host a9 n1")
    assert "409" in boss.refused("aggregate add host a9 n1")
    assert "z9" in demo.names("availability zone list --compute", "Zone Name")
    boss("aggregate set a9 --property gpu=2 --name a10")
    boss("aggregate unset a10 --property ssd")
    shown = boss.read("aggregate show a10")
    assert (shown["hosts"], shown["properties"]) == (["n1"], {"gpu": "2"})
    assert boss.refused("aggregate delete a10")
    boss("aggregate remove host a10 n1")
    boss("aggregate delete a10")
    assert "a10" not in boss.names("aggregate list --long")
    assert "403" in demo.refused("aggregate list")


def test_hypervisors(boss: Person, demo: Person) -> None:
    assert boss.names("hypervisor list --long", "Hypervisor Hostname") == list(NODES)
    assert boss.names("hypervisor list --matching n2", "Hypervisor Hostname") == ["n2"]
    shown = boss.read("hypervisor show n1")
    assert (shown["hypervisor_hostname"], shown["state"], shown["vcpus"]) == ("n1", "up", 8)
    assert boss.read("hypervisor stats show")["count"] == len(NODES)
    assert boss.refused("hypervisor show n9")
    assert "403" in demo.refused("hypervisor list")


def test_compute_services(boss: Person, demo: Person) -> None:
    (service,) = boss.read("compute service list --service nova-compute")
    assert (service["Status"], service["State"]) == ("enabled", "up")
    host = service["Host"]
    boss("compute service set --disable --disable-reason", "a new disk", host, "nova-compute")
    (service,) = boss.read("compute service list --long")
    assert (service["Status"], service["Disabled Reason"]) == ("disabled", "a new disk")
    boss("compute service set --enable", host, "nova-compute")
    boss("compute service set --down", host, "nova-compute")
    assert boss.names("compute service list", "State") == ["down"]
    boss("compute service set --up", host, "nova-compute")
    assert boss.names("compute service list", "State") == ["up"]
    assert boss.names("host list", "Host Name").count(host) >= 1
    assert "403" in demo.refused("compute service list")


def test_server_groups(demo: Person) -> None:
    made = demo.read("server group create --policy anti-affinity --rule max_server_per_host=2 g9")
    assert (made["name"], made["policy"], made["rules"]) == ("g9", "anti-affinity", {"max_server_per_host": 2})
    assert demo.names("server group list --long --limit 1") == ["g9"]
    assert demo.read("server group show g9")["id"] == made["id"]
    demo("server group delete g9")
    assert demo.names("server group list") == []
    assert demo.refused("server group show g9")


def test_keypairs(demo: Person, boss: Person, tmp_path: Path) -> None:
    key = demo("keypair create k9")
    assert "PRIVATE KEY" in key
    assert demo.names("keypair list") == ["k9"]
    shown = demo.read("keypair show k9")
    assert shown["name"] == "k9"
    public = tmp_path / "k9.pub"
    public.write_text(demo("keypair show --public-key k9"))
    demo("keypair create k10 --public-key", str(public))
    assert "409" in demo.refused("keypair create k10 --public-key", str(public))
    assert boss.names("keypair list") == []
    demo("keypair delete k9 k10")
    assert demo.names("keypair list") == []


def test_zones_limits_and_quotas(boss: Person, demo: Person) -> None:
    assert "nova" in demo.names("availability zone list --compute", "Zone Name")
    assert "nova" in boss.names("availability zone list --compute --long", "Zone Name")
    assert {"instances", "total_cores_used"} & set(demo.names("limits show --absolute"))
    assert _quota(demo) == 50
    boss("quota set --instances 7 demo")
    assert (_quota(demo), _quota(boss, "demo")) == (7, 7)
    boss("quota delete --compute demo")
    assert _quota(demo) == 50
    assert demo.refused("quota set --instances 900 demo")


def _quota(person: Person, *project: str) -> int:
    rows = person.read("quota show --compute", *project)
    return int(next(row["Limit"] for row in rows if row["Resource"] == "instances"))


def test_networks(demo: Person) -> None:
    assert "private" in demo.names("network list")
    assert demo.read("network show private")["name"] == "private"
    assert demo.read("subnet list")
    assert demo.read("port list") == []
    assert demo.read("floating ip list") == []
    assert demo.names("security group list") == ["default"]
