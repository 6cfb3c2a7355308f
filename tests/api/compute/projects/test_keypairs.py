"""Keypairs over the API."""

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from tests.api.compute.api_clients import MEMBER, Person, done, message

KEYS = "/compute/v2.1/os-keypairs"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzV0m9b4k8cRkzJ9o4eVvY2k1fWm5H4mE5mJ0C0Yb3A me@here"
V10 = {"headers": {"OpenStack-API-Version": "compute 2.10"}}


def add(who: Person, name: str, status: int = 200, **more: Any) -> Any:
    return done(who("POST", KEYS, {"keypair": {"name": name, "public_key": KEY, **more}}), status)["keypair"]


def test_a_pair_is_created_for_who_sends_no_key_and_its_private_half_reported_once(member: Person) -> None:
    made = done(member("POST", KEYS, {"keypair": {"name": "made"}}))["keypair"]
    public = load_ssh_private_key(made["private_key"].encode(), None).public_key()
    words = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert made["public_key"] == f"{words} made"
    shown = member.get(f"{KEYS}/made")["keypair"]
    assert "private_key" not in shown
    assert shown["fingerprint"] == made["fingerprint"]
    assert "private_key" not in add(member, "sent")


def test_the_private_half_is_not_logged(member: Person, caplog: pytest.LogCaptureFixture) -> None:
    made = done(member("POST", KEYS, {"keypair": {"name": "made"}}))["keypair"]
    assert made["private_key"].splitlines()[1] not in caplog.text


def test_keys_by_page_since_2_35(member: Person) -> None:
    for name in ("c", "a", "b"):
        add(member, name)
    assert [one["keypair"]["name"] for one in member.get(KEYS)["keypairs"]] == ["a", "b", "c"]
    assert len(member.get(f"{KEYS}?limit=1")["keypairs"]) == 3
    page = member.get(f"{KEYS}?limit=2", "2.35")
    assert [one["keypair"]["name"] for one in page["keypairs"]] == ["a", "b"]
    path = page["keypairs_links"][0]["href"].removeprefix("http://here")
    assert [one["keypair"]["name"] for one in member.get(path, "2.35")["keypairs"]] == ["c"]
    headers = {"OpenStack-API-Version": "compute 2.35"}
    assert message(member("GET", f"{KEYS}?marker=x", headers=headers), 400, "badRequest")


def test_administrators_see_the_keys_of_others_since_2_10(admin: Person, member: Person) -> None:
    whose = MEMBER.user_id
    body = {"keypair": {"name": "theirs", "public_key": KEY, "user_id": whose}}
    made = done(admin("POST", KEYS, body, **V10), 201)["keypair"]
    assert (made["user_id"], made["type"]) == (whose, "ssh")
    assert member.get(f"{KEYS}/theirs")["keypair"]["user_id"] == whose
    assert admin.get(f"{KEYS}?user_id={whose}", "2.10")["keypairs"][0]["keypair"]["name"] == "theirs"
    assert admin.get(f"{KEYS}?user_id={whose}", "2.2") == {"keypairs": []}
    for method, path, sent in (
        ("GET", f"{KEYS}?user_id=other", None),
        ("GET", f"{KEYS}/theirs?user_id=other", None),
        ("DELETE", f"{KEYS}/theirs?user_id=other", None),
        ("POST", KEYS, {"keypair": {"name": "x", "user_id": "other"}}),
        ("POST", KEYS, {"keypair": {"name": "x", "user_id": "other", "public_key": "?"}}),
        ("POST", KEYS, {"keypair": {"user_id": "other"}}),
    ):
        assert message(member(method, path, sent, **V10), 403, "forbidden")
    assert admin("DELETE", f"{KEYS}/theirs?user_id={whose}", **V10).status_code == 204
    assert message(member("GET", f"{KEYS}/theirs"), 404, "itemNotFound")


def test_a_user_has_so_many_keys(admin: Person, member: Person) -> None:
    done(admin("PUT", "/compute/v2.1/os-quota-sets/project", {"quota_set": {"key_pairs": 3}}))
    bodies = [{"keypair": {"name": f"k{place}", "public_key": KEY}} for place in range(6)]
    with ThreadPoolExecutor(6) as people:
        answers = list(people.map(lambda body: member("POST", KEYS, body).status_code, bodies))
    assert sorted(answers) == [200] * 3 + [403] * 3
    assert len(member.get(KEYS)["keypairs"]) == 3


NO_KEYS: list[Any] = [
    {"name": ""},
    {"name": " "},
    {"name": "a/b"},
    {"name": "x" * 256},
    {"name": 7},
    {"public_key": "?"},
    {"public_key": ""},
    {"public_key": 7},
    {"public_key": f"{KEY}\n{KEY}"},
    {"public_key": KEY.replace("ssh-ed25519", "ssh-rsa")},
    {"public_key": f"ssh-rsa {base64.b64encode(b'nothing').decode()}"},
    {"public_key": KEY + "x" * 20000},
    {"type": "x509"},
]


def test_a_key_that_cannot_be_is_refused(member: Person) -> None:
    for wrong in NO_KEYS:
        assert message(member("POST", KEYS, {"keypair": {"name": "k", "public_key": KEY, **wrong}}), 400, "badRequest")
        assert member.get(KEYS) == {"keypairs": []}
