"""Bodies of servers: what is read, and what is refused."""

from typing import Any

import pytest

from api.compute.servers import server_bodies
from api.compute.servers.server_bodies import NEW, NEW_BUILD, Interfaces
from climate.domain.errors import InvalidInput

NETWORK = "6f9d2c7e-0000-4000-8000-00000000abcd"
SERVER: dict[str, Any] = {"name": "s", "flavorRef": 1}


def read(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = NEW.read({"server": SERVER | changes})["server"]
    return found


def test_defaults_of_a_small_request() -> None:
    found = read()
    assert (found["flavor_ref"], found["min_count"], found["metadata"], found["password"]) == ("1", 1, {}, "")
    assert not found.keys() & {"max_count", "networks", "num_instances", "zone_build", "reservation_id"}


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        ("auto", Interfaces()),
        ([], Interfaces()),
        ("none", Interfaces(())),
        ([{"uuid": NETWORK, "port": None, "tag": "x"}], Interfaces((NETWORK,))),
        ([{"uuid": NETWORK, "fixed_ip": "10.0.0.1"}], Interfaces((NETWORK,), ((NETWORK, "10.0.0.1"),))),
        (None, None),
    ],
)
def test_networks(given: Any, networks: Interfaces | None) -> None:
    assert read(networks=given)["networks"] == networks


def test_image_of_block_devices() -> None:
    assert read(block_device_mapping_v2=[{"source_type": "image", "uuid": NETWORK}])["device_image"] == NETWORK
    assert read(block_device_mapping_v2=None)["device_image"] is None


def test_null_build_is_not_an_absent_one() -> None:
    assert read(zone_build=None)["zone_build"] is None
    assert read(zone_build={"id": "b"})["zone_build"] == {"id": "b", "launch_index": 0, "public_key": None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": 1, "b": 1}, "server: b, status cannot be set"),
        (
            {"networks": [{"uuid": NETWORK}, {"uuid": NETWORK, "fixed_ip": "10.0.0.3"}]},
            f"networks: with fixed_ip, network {NETWORK} is given twice",
        ),
        ({"networks": [{"port": NETWORK}] * 2}, f"networks: port {NETWORK} is given twice"),
        ({"networks": [{"port": NETWORK, "fixed_ip": "10.0.0.3"}]}, "networks: a port has its addresses"),
        (
            {"networks": [{"uuid": NETWORK, "subnet": 1}]},
            "networks: 'subnet' cannot be set; known are uuid, fixed_ip and port",
        ),
        ({"networks": [{"fixed_ip": "10.0.0.3"}]}, 'networks: each must be like {"uuid"'),
        ({"networks": [{"uuid": "x"}]}, "networks.uuid must be a UUID"),
        ({"networks": [{"uuid": NETWORK, "fixed_ip": "x"}]}, "networks.fixed_ip must be an IPv4 address"),
        ({"host": "a:b"}, "host must be the name of a host"),
        (
            {"zone_build": {"x": 1}},
            "zone_build: only id, launch_index, project_id, public_key, user_id can be given, not 'x'",
        ),
        ({"zone_build": {"launch_index": -1}}, "zone_build.launch_index must be a whole number from 0"),
        ({"scheduler_hints": []}, "scheduler_hints must be an object"),
    ],
)
def test_refused_keys(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(**changes)
    assert str(refused.value).startswith(says)


def test_keys_beside_the_server_are_hints_only() -> None:
    assert NEW.read({"server": SERVER, "os:scheduler_hints": {"a": 1}})["os_hints"] == {"a": 1}
    with pytest.raises(InvalidInput, match=r"^The body may have server, os:scheduler_hints, .* not 'flavor'"):
        NEW.read({"server": SERVER, "flavor": {}})


def test_build_counts_further_than_a_boot() -> None:
    assert "min_count" not in NEW_BUILD.read({"server": SERVER})["server"]
    with pytest.raises(InvalidInput, match=r"^min_count must be a whole number from 1 to 1000"):
        NEW_BUILD.read({"server": SERVER | {"min_count": 1001}})


def test_change_has_a_key_and_leaves_out_what_has_no_effect() -> None:
    changed = server_bodies.CHANGED
    assert changed.read({"server": {"accessIPv4": "", "hostname": "x"}}) == {"access_ipv4": None}
    assert changed.read({"server": {}}) == {}
    with pytest.raises(InvalidInput, match=r"^server: only OS-DCF:diskConfig, accessIPv4, accessIPv6, description, "):
        changed.read({"server": {"status": "ACTIVE"}})
