"""What may be said of a server when it is asked for, and who is shown it again."""

from werkzeug.test import TestResponse

from tests.api.compute.api_clients import Person, World, done, message, server

SERVERS = "/compute/v2.1/servers"


def test_access_addresses_are_kept_and_shown(member: Person) -> None:
    server_id = member.booted(accessIPv4="198.51.100.7", accessIPv6="2001:DB8:0::1")
    path = f"{SERVERS}/{server_id}"
    shown = member.get(path)["server"]
    assert (shown["accessIPv4"], shown["accessIPv6"]) == ("198.51.100.7", "2001:db8::1")
    changed = done(member("PUT", path, {"server": {"accessIPv4": "", "accessIPv6": "2001:db8::2"}}))["server"]
    assert (changed["accessIPv4"], changed["accessIPv6"]) == ("", "2001:db8::2")
    for wrong in ({"accessIPv4": "2001:db8::1"}, {"accessIPv6": "198.51.100.7"}, {"accessIPv4": 7}):
        told = message(member("PUT", path, {"server": wrong}), 400, "badRequest")
        assert next(iter(wrong)) in told
        assert next(iter(wrong)) in message(member.boot(**wrong), 400, "badRequest")


def test_answers_to_changes_have_fewer_keys_before_2_75(there: World, admin: Person) -> None:
    server_id = admin.booted()
    there.settle()
    path = f"{SERVERS}/{server_id}"

    def keys(version: str) -> set[str]:
        headers = {"OpenStack-API-Version": f"compute {version}"}
        changed = done(admin("PUT", path, {"server": {"name": "n"}}, headers=headers))["server"]
        for entries in changed["addresses"].values():
            assert ("OS-EXT-IPS:type" in entries[0]) == (version == "2.75")
        return set(changed)

    plain = {"id", "name", "status", "tenant_id", "user_id", "metadata", "hostId", "image", "flavor", "created"}
    plain |= {"updated", "addresses", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig", "links", "progress"}
    assert keys("2.1") == plain
    assert keys("2.74") == plain | {"locked", "locked_reason", "description", "tags", "server_groups"} | {
        "trusted_image_certificates"
    }
    assert keys("2.75") == set(admin.get(path, "2.75")["server"])


def test_user_data_is_shown_to_administrators_alone(member: Person, admin: Person) -> None:
    server_id = member.booted(user_data="QUFB")
    path, key = f"{SERVERS}/{server_id}", "OS-EXT-SRV-ATTR:user_data"
    assert admin.get(path, "2.3")["server"][key] == "QUFB"
    found = admin.get(f"{SERVERS}/detail?all_tenants=1", "2.79")["servers"]
    assert {one["id"]: one[key] for one in found}[server_id] == "QUFB"
    assert key not in admin.get(path, "2.1")["server"]
    assert key not in member.get(path, "2.79")["server"]


def test_a_named_host_is_for_administrators_and_its_room_is_asked_for(
    there: World, member: Person, admin: Person
) -> None:
    at_2_74 = {"OpenStack-API-Version": "compute 2.74"}

    def asked(who: Person, **named: str) -> TestResponse:
        return who("POST", SERVERS, {"server": server(networks="auto", **named)}, headers=at_2_74)

    assert message(asked(member, hypervisor_hostname="std-1"), 403, "forbidden")
    assert message(asked(admin, host="nowhere"), 400, "badRequest") == "Compute host nowhere could not be found."
    assert message(asked(admin, availability_zone="nowhere"), 400, "badRequest")
    made = done(asked(admin, hypervisor_hostname="std-1"), 202)["server"]["id"]
    assert there.here.look(made).node == "std-1"
    full = done(asked(admin, hypervisor_hostname="std-1", flavorRef="5"), 202)["server"]["id"]
    assert "RamFilter" in str(there.here.look(full).fault)
    forced = done(asked(admin, availability_zone="nova::std-1", flavorRef="5"), 202)["server"]["id"]
    assert there.here.look(forced).node == "std-1"
