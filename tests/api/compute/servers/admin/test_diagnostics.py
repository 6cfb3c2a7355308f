"""Diagnostics of servers over HTTP."""

from tests.api.compute.api_clients import Person, World, message

SERVERS = "/compute/v2.1/servers"


def test_the_keys_are_those_of_nova_since_2_48(there: World, admin: Person, member: Person) -> None:
    made = member.booted()
    there.settle()
    server = there.here.look(made)
    shown = admin.get(f"{SERVERS}/{made}/diagnostics", "2.48")
    assert (shown["state"], shown["driver"], shown["config_drive"]) == ("running", "libvirt", False)
    assert shown["memory_details"] == {"maximum": server.flavor.ram_mb, "used": None}
    assert (shown["num_cpus"], len(shown["cpu_details"])) == (server.flavor.vcpus,) * 2
    assert [nic["mac_address"] for nic in shown["nic_details"]] == [one.mac for one in server.addresses]
    assert (shown["num_nics"], shown["num_disks"], len(shown["disk_details"])) == (1, 1, 1)


def test_a_server_that_does_not_run_has_none_since_2_48(there: World, admin: Person, member: Person) -> None:
    made = member.booted()
    there.settle()
    assert member.act(made, "os-stop").status_code == 202
    there.settle()
    path = f"{SERVERS}/{made}/diagnostics"
    refusal = admin("GET", path, headers={"OpenStack-API-Version": "compute 2.48"})
    assert "while it is SHUTOFF" in message(refusal, 409, "conflictingRequest")
    assert admin.get(path)["state"] == "shutoff"
