"""Sharing of leases on the wire."""

from typing import Any

import pytest

from climate.domain.sharing.sharing import MOST_PROJECTS, MOST_USERS
from tests.api.reservation.api_clients import Person, order, reservation

OTHERS = {"projects": [], "viewers": [], "extenders": []}
AS_PROJECT = OTHERS | {"projects": ["other-project"]}
AS_VIEWER = OTHERS | {"viewers": ["other-user"]}
AS_EXTENDER = OTHERS | {"extenders": ["other-user"]}


def message(refused: Any) -> str:
    return str(refused.json["error_message"])


@pytest.mark.parametrize("sharing", [AS_PROJECT, AS_VIEWER, AS_EXTENDER])
def test_it_is_shown_listed_and_read_only(member: Person, stranger: Person, sharing: dict[str, list[str]]) -> None:
    plain = member.lease(name="plain")
    lease = member.lease(name="shared", sharing=sharing)
    assert set(lease) - set(plain) == {"sharing"}
    assert lease["sharing"] == sharing
    path = f"/leases/{lease['id']}"
    assert [one["id"] for one in stranger.get("/leases")["leases"]] == [lease["id"]]
    assert stranger.get("/leases?project_id=other-project")["leases"] == []
    assert stranger.get(path)["lease"] == lease
    assert stranger.get(f"{path}/history")["history"][0]["kind"] == "LeaseCreated"
    assert stranger.get(f"{path}/hosts")["hosts"]
    for method, body in (("DELETE", None), ("PUT", {"name": "mine"}), ("PUT", {"sharing": OTHERS}), ("POST", None)):
        refused = stranger(method, f"{path}/confirm" if method == "POST" else path, body)
        assert refused.status_code == 403, (method, body)
        assert "This lease is shared with you" in message(refused)
    for wanted in ("", "/history", "/hosts"):
        assert stranger("GET", f"/leases/{plain['id']}{wanted}").status_code == 404
    assert stranger("PUT", f"/leases/{plain['id']}", {"end_date": "2030-01-02 14:00"}).status_code == 404


def test_who_may_prolong_it(member: Person, stranger: Person) -> None:
    later, earlier = {"end_date": "2030-01-02 14:00"}, {"end_date": "2030-01-02 11:00"}
    for sharing, status in ((AS_PROJECT, 403), (AS_VIEWER, 403), (AS_EXTENDER, 200)):
        path = f"/leases/{member.lease(sharing=sharing)['id']}"
        assert stranger("PUT", path, later).status_code == status
        refused = stranger("PUT", path, earlier)
        assert refused.status_code == 403
    assert "to a later time than 2030-01-02 14:00 UTC only" in message(refused)
    assert stranger("PUT", path, {"end_date": "now"}).status_code == 403
    assert stranger("PUT", path, {"end_date": "2030-01-02 15:00", "name": "x"}).status_code == 403
    shown = stranger.get(path)["lease"]
    again = stranger("PUT", path, {**shown, "end_date": "2030-01-02 16:00"})
    assert again.status_code == 200, "an answer that is sent back changes what differs"


def test_a_reader_of_another_project_prolongs_nothing(member: Person, reader: Person) -> None:
    lease = member.lease(sharing=OTHERS | {"extenders": ["reader-user"]})
    assert reader("PUT", f"/leases/{lease['id']}", {"end_date": "2030-01-02 14:00"}).status_code == 403


def test_it_is_changed_and_ended_by_put(member: Person, admin: Person, stranger: Person) -> None:
    path = f"/leases/{member.lease()['id']}"
    assert "sharing" not in member.get(path)["lease"]
    assert member.done(member("PUT", path, {"sharing": AS_VIEWER}))["lease"]["sharing"] == AS_VIEWER
    assert stranger("GET", path).status_code == 200
    shown = member.get(path)["lease"]
    assert member.done(member("PUT", path, shown))["lease"] == shown
    assert "sharing" not in admin.done(admin("PUT", path, {"sharing": None}))["lease"]
    assert stranger("GET", path).status_code == 404
    changed = [line for line in member.get(f"{path}/history")["history"] if line["kind"] == "SharingChanged"]
    assert [(line["body"]["before"], line["body"]["sharing"]) for line in changed] == [
        (OTHERS, AS_VIEWER),
        (AS_VIEWER, OTHERS),
    ]
    assert [line["actor"]["user_id"] for line in changed] == ["user", "admin-user"]


@pytest.mark.parametrize(
    "sharing",
    [
        [],
        "other-project",
        {"projects": "other-project"},
        {"projects": [1]},
        {"projects": [""]},
        {"projects": ["a,b"]},
        {"projects": ["a\n"]},
        {"viewers": ["\ud800"]},
        {"viewers": ["x" * 65]},
        {"viewers": ["x", "x"]},
        {"owners": ["x"]},
        {"projects": [f"p{number}" for number in range(MOST_PROJECTS + 1)]},
        {"extenders": [f"u{number}" for number in range(MOST_USERS + 1)]},
        {"projects": ["project"]},
    ],
)
def test_what_cannot_be_is_refused(member: Person, sharing: Any) -> None:
    path = f"/leases/{member.lease()['id']}"
    assert member("PUT", path, {"sharing": sharing}).status_code == 400
    assert member("POST", "/leases", order(sharing=sharing)).status_code == 400


def test_a_lease_of_a_hold_is_shared_afterwards(member: Person) -> None:
    question = {"reservations": [reservation()], "duration": 3600, "earliest": "now"}
    offer = member.done(member("POST", "/availability", question))["offers"][0]
    hold = member.done(member("POST", "/holds", {"offer": offer["id"]}), 201)["hold"]
    refused = member("POST", "/leases", {"name": "l", "hold": hold["id"], "sharing": AS_VIEWER})
    assert refused.status_code == 400
    assert "share the lease once it is made" in message(refused)


def test_a_hold_of_another_project_is_not_listed(member: Person, stranger: Person) -> None:
    lease = member.lease(hold_seconds=60, sharing=AS_EXTENDER)
    assert stranger.get("/holds")["holds"] == []
    for method, path in (("POST", f"/holds/{lease['id']}/renew"), ("DELETE", f"/holds/{lease['id']}")):
        assert stranger(method, path).status_code in (403, 404)
    assert member.get(f"/leases/{lease['id']}")["lease"]["status"] == "HELD"
