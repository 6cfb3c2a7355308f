"""What a guest in a child zone reads: the key pair, the user data and the metadata of the request at the parent."""

import base64
import json
from typing import Any

from sqlalchemy import text

from climate.compute.metadata import config_drives, guest_metadata
from climate.compute.metadata.config_drives import META_DATA, USER_DATA
from climate.compute.metadata.guest_metadata import GuestMetadata
from climate.compute.models import keypair
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.store.servers import servers
from tests.compute.zones.build_plan_trees import built, done, names_here, offered, refusal, rows, server
from tests.compute.zones.builds.test_placement import build, grandchild_offer, order
from tests.compute.zones.builds.test_provisioning import fill
from tests.compute.zones.tree import Tree, Zone

NAME = "laptop"
VERSION = {"OpenStack-API-Version": "compute 2.57"}
SCRIPT = b"#!/bin/sh\nexit 0\n"


def add_key(zone: Zone, user: str = "demo") -> str:
    """Give a user of a zone the key pair `laptop`; its public key."""
    public = keypair.generate(f"{zone.name}-{user}").public
    zone.ask("DELETE", f"/os-keypairs/{NAME}", user=user)
    done(zone.ask("POST", "/os-keypairs", {"keypair": {"name": NAME, "public_key": public}}, user=user))
    return public


def place_of(tree: Tree) -> Zone:
    """The only zone that has a server."""
    (name,) = (name for name, zone in tree.zones.items() if names_here(zone))
    return tree[name]


def guest(zone: Zone, number: int = 0) -> GuestMetadata:
    """What the guest of a server reads."""
    with zone.compute.engine.connect() as conn:
        found = servers.get(conn, str(rows(zone, "compute_servers")[number]["id"]))
        assert found is not None
        return guest_metadata.gathered(zone.compute, conn, found)


def test_guest_of_a_child_reads_what_was_asked_of_the_parent(plans: Tree) -> None:
    parent = plans["parent"]
    public = add_key(parent)
    for name in ("left", "right", "grandchild"):
        add_key(plans[name], "admin")  # the account by which the parent orders has other keys
    fill(parent)
    asked = {"key_name": NAME, "metadata": {"a": "b"}, "user_data": base64.b64encode(SCRIPT).decode()}
    done(parent.ask("POST", "/servers", server(name="web", config_drive=True, **asked), user="demo"), 202)
    zone = place_of(plans)
    own = guest(zone)
    assert (own.key, own.user_data, own.server.metadata) == ((NAME, public), SCRIPT, {"a": "b"})
    drive = config_drives.of_server(zone.compute, own.server)
    shown = json.loads(drive[META_DATA])
    assert (shown["public_keys"], shown["meta"], drive[USER_DATA]) == ({NAME: public}, {"a": "b"}, SCRIPT)


def test_key_pair_goes_through_both_levels(plans: Tree) -> None:
    public, parent = add_key(plans["parent"], "admin"), plans["parent"]
    build_of_many = built(parent, num_instances=20, key_name=NAME)
    assert build_of_many["placed"] == 20
    for zone in plans.zones.values():
        keys = {guest(zone, number).key for number in range(len(names_here(zone)))}
        assert keys == {(NAME, public)}, zone.name


def test_order_of_a_grandchild_carries_the_key_of_the_first_zone(plans: Tree) -> None:
    add_key(plans["left"], "admin")
    theirs = keypair.generate("theirs").public
    blob = grandchild_offer(plans)
    done(order(plans["left"], blob, key_name=NAME, zone_build=build() | {"public_key": theirs}), 202)
    assert guest(plans["grandchild"]).key == (NAME, theirs)


def test_account_of_the_parent_lends_no_key_of_its_own(pair: Tree) -> None:
    left = pair["left"]
    add_key(left, "admin")
    (one,) = offered(left)
    done(order(left, one["blob"], key_name=NAME, zone_build=build()), 202)
    assert guest(left).key is None


def test_administrator_who_takes_an_offer_by_hand_uses_own_key_pairs(plans: Tree) -> None:
    left = plans["left"]
    public = add_key(left, "admin")
    done(order(left, grandchild_offer(plans), key_name=NAME), 202)
    assert guest(plans["grandchild"]).key == (NAME, public)


def test_rebuild_with_a_key_pair_of_the_child_replaces_the_sent_key(pair: Tree) -> None:
    left = pair["left"]
    own = add_key(left, "admin")
    (one,) = offered(left)
    sent: Any = build() | {"public_key": keypair.generate("theirs").public}
    done(order(left, one["blob"], key_name="theirs", zone_build=sent), 202)
    left.settle()
    (row,) = rows(left, "compute_servers")
    body = {"rebuild": {"imageRef": str(row["image_id"]), "key_name": NAME}}
    version = {"OpenStack-API-Version": "compute 2.54"}
    done(left.ask("POST", f"/servers/{row['id']}/action", body, headers=version), 202)
    assert guest(left).key == (NAME, own)


def rebuilt(zone: Zone, server_id: str, user: str = "demo", **values: Any) -> Any:
    body = {"rebuild": {"imageRef": IMAGE_ID, **values}}
    return zone.ask("POST", f"/servers/{server_id}/action", body, user=user, headers=VERSION)


def test_rebuild_at_the_parent_changes_key_and_user_data_in_the_grandchild(plans: Tree) -> None:
    parent = plans["parent"]
    fill(parent)
    fill(plans["left"])
    fill(plans["right"])
    made = done(parent.ask("POST", "/servers", server(name="web"), user="demo"), 202)["server"]["id"]
    zone = plans["grandchild"]
    assert place_of(plans) is zone
    zone.settle()
    public = add_key(parent)
    add_key(zone, "admin")
    shown = done(rebuilt(parent, made, key_name=NAME, user_data=base64.b64encode(SCRIPT).decode()), 202)["server"]
    assert (shown["key_name"], guest(zone).key, guest(zone).user_data) == (NAME, (NAME, public), SCRIPT)
    zone.settle()
    done(rebuilt(parent, made), 202)
    assert (guest(zone).key, guest(zone).user_data) == ((NAME, public), SCRIPT)
    zone.settle()
    done(rebuilt(parent, made, key_name=None, user_data=None), 202)
    assert (guest(zone).key, guest(zone).user_data) == (None, None)


def test_only_the_user_of_a_server_in_a_child_changes_its_key_pair(plans: Tree) -> None:
    parent = plans["parent"]
    fill(parent)
    made = done(parent.ask("POST", "/servers", server(name="web"), user="demo"), 202)["server"]["id"]
    zone = place_of(plans)
    zone.settle()
    add_key(parent, "admin")
    assert "Only the user who created" in refusal(rebuilt(parent, made, "admin", key_name=NAME), 403)
    assert "Invalid key_name" in refusal(rebuilt(parent, made, key_name="none"), 400)
    assert "public_key cannot be set" in refusal(rebuilt(parent, made, public_key=keypair.generate("x").public), 400)
    assert guest(zone).key is None


def test_what_is_no_public_key_is_refused_before_anything_is_done(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    for wrong in ("no key", "ssh-ed25519 AAAA\nssh-ed25519 BBBB", 5, "x" * 70000):
        sent = build() | {"public_key": wrong}
        assert "public_key" in refusal(order(left, one["blob"], key_name=NAME, zone_build=sent), 400)
    assert names_here(left) == []


def test_deleted_key_pair_leaves_the_metadata_of_servers_at_home(pair: Tree) -> None:
    parent = pair["parent"]
    public = add_key(parent)
    done(parent.ask("POST", "/servers", server(key_name=NAME), user="demo"), 202)
    assert guest(parent).key == (NAME, public)
    parent.ask("DELETE", f"/os-keypairs/{NAME}", user="demo")
    assert guest(parent).key is None
    with parent.compute.engine.connect() as conn:
        assert conn.scalar(text("SELECT public_key FROM compute_servers")) is None
