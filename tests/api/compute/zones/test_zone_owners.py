"""Servers in children as users of the parent see them: their own, at the parent's URL, and nothing of the child."""

from typing import Any
from uuid import uuid4

import pytest

from climate.compute.zones.answer_rewriting import FORBIDDEN
from tests.compute.zones.build_plan_trees import done
from tests.compute.zones.tree import LATEST, Tree, Zone

READS = (
    "/servers/{id}",
    "/servers/{id}/metadata",
    "/servers/{id}/ips",
    "/servers/{id}/os-interface",
    "/servers/{id}/os-instance-actions",
    "/servers/{id}/os-instance-actions/{request}",
    "/servers/{id}/os-security-groups",
    "/servers/{id}/os-volume_attachments",
    "/servers/{id}/diagnostics",
    "/servers/{id}/tags",
    "/servers?recurse_zones=1",
    "/servers?reservation_id=r-1",
    "/servers/detail?recurse_zones=1",
    "/servers/detail?recurse_zones=1&all_tenants=1&limit=1",
    "/servers/detail?reservation_id=r-1",
    "/os-zone-builds",
)
ACTIONS: tuple[dict[str, Any], ...] = (
    {"os-stop": None},
    {"os-start": None},
    {"pause": None},
    {"resize": {"flavorRef": "none"}},
    {"createImage": {"name": "copy"}},
    {"os-getConsoleOutput": {}},
    {"os-getVNCConsole": {"type": "novnc"}},
    {"changePassword": {"adminPass": "x"}},
    {"addFloatingIp": {"address": "10.0.0.1"}},
    {"no-such-action": None},
)


def account(zone: Zone) -> tuple[str, str]:
    """(project, user) of the account that the parent has in a child."""
    asker = zone.person("admin")
    whose = asker.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": asker.token}).get_json()["token"]
    return whose["project"]["id"], whose["user"]["id"]


def owner(zone: Zone) -> tuple[str, str]:
    asker = zone.person("demo")
    whose = asker.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": asker.token}).get_json()["token"]
    return whose["project"]["id"], whose["user"]["id"]


@pytest.fixture
def placed(family: Tree) -> str:
    """A server of demo that the parent has placed in the child on the left."""
    server_id = family["left"].boot(user="admin", metadata={"href": "http://left/compute/v2.1/mine"})
    family["parent"].place(server_id, 1)
    return server_id


@pytest.mark.parametrize("version", ["2.1", "2.46", "2.79"])
def test_a_server_in_a_child_is_its_owners_at_the_url_of_the_parent(family: Tree, placed: str, version: str) -> None:
    parent = family["parent"]
    for path in (f"/servers/{placed}", "/servers/detail?recurse_zones=1"):
        for user in ("demo", "admin"):
            everybody = "&all_tenants=1" if "?" in path and user == "admin" else ""
            headers = {"OpenStack-API-Version": f"compute {version}"}
            body = done(parent.ask("GET", path + everybody, user=user, headers=headers))
            server = body.get("server") or next(one for one in body["servers"] if one["id"] == placed)
            assert (server["tenant_id"], server["user_id"]) == owner(parent)
            assert [link["href"] for link in server["links"]] == [
                f"http://parent/compute/v2.1/servers/{placed}",
                f"http://parent/compute/servers/{placed}",
            ]
            assert all(link["href"].startswith("http://parent/compute/") for link in server["image"]["links"])
            assert server["metadata"] == {"href": "http://left/compute/v2.1/mine"}, "what users write stays as it is"


@pytest.mark.parametrize("user", ["demo", "admin"])
def test_nothing_of_the_account_and_the_url_of_a_child_is_reported(family: Tree, user: str) -> None:
    parent, left = family["parent"], family["left"]
    server_id = left.boot(user="admin")
    parent.place(server_id, 1)
    noted = done(left.ask("GET", f"/servers/{server_id}/os-instance-actions", headers=LATEST))["instanceActions"]
    secrets = (*account(left), left.compute.zones.own_id(), "http://left", "left-n", left.password("admin"))
    answers = []
    for path in READS:
        asked = path.format(id=server_id, request=noted[0]["request_id"])
        answers += [parent.ask("GET", asked, user=user, headers=headers) for headers in (LATEST, {})]
    for action in ACTIONS:
        answers.append(parent.ask("POST", f"/servers/{server_id}/action", action, user=user, headers=LATEST))
        left.settle()
    answers.append(parent.ask("PUT", f"/servers/{server_id}", {"server": {"name": "n"}}, user=user))
    answers.append(parent.ask("POST", f"/servers/{server_id}/metadata", {"metadata": {"a": "b"}}, user=user))
    answers.append(parent.ask("DELETE", f"/servers/{server_id}", user=user))
    family.cut("left")
    answers.append(parent.ask("GET", f"/servers/{server_id}", user=user))
    answers.append(parent.ask("GET", f"/servers/{uuid4()}", user=user))
    answers.append(parent.ask("GET", "/servers/detail?recurse_zones=1", user=user))
    assert sum(answer.status_code < 300 for answer in answers) > len(READS)
    for answer in answers:
        said = answer.get_data(as_text=True) + str(answer.headers)
        told = [secret for secret in secrets if secret in said]
        if user == "admin" and '"unreachable_zones"' in said:
            told = [secret for secret in told if secret != "http://left"]
        assert not told, (answer.request.path, said)


def test_a_refusal_of_the_account_is_reported_without_the_text_of_the_child(family: Tree, placed: str) -> None:
    parent, left = family["parent"], family["left"]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].endswith("/action"):
            start_response("403 Forbidden", [("Content-Type", "application/json")])
            return [b'{"forbidden": {"message": "Quota exceeded for cores: already used 20 of 20 cores"}}']
        return left.app(environ, start_response)

    family.applications["left"] = application
    refused = parent.ask("POST", f"/servers/{placed}/action", {"resize": {"flavorRef": "2"}}, "demo", headers=LATEST)
    assert (refused.status_code, refused.get_json()) == (403, FORBIDDEN)
