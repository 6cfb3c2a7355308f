"""A real tree of zones: the page that leads through it, a server two zones below, and a child that dies."""

import re
import subprocess
from typing import Any

import pytest

from tests.system.api_client import Api
from tests.system.stack import ROOT, await_so
from tests.system.zone_tree import SECONDS, C, ZoneTree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

NEW = {"OpenStack-API-Version": "compute 2.79"}


def status(api: Api, server_id: str) -> str:
    answer = api.ask("GET", f"{C}/servers/{server_id}", **NEW)
    return str(answer.json()["server"]["status"]) if answer.status_code == 200 else str(answer.status_code)


def boot(api: Api, name: str) -> str:
    image = api.ask("GET", "/image/v2/images").json()["images"][0]["id"]
    body = {"server": {"name": name, "flavorRef": "1", "imageRef": image, "networks": "auto"}}
    answer = api.ask("POST", f"{C}/servers", body, **NEW)
    assert answer.status_code == 202, answer.text
    server_id = str(answer.json()["server"]["id"])
    await_so(lambda: status(api, server_id) == "ACTIVE", SECONDS, f"the boot of {name}")
    return server_id


def children(api: Api) -> dict[str, dict[str, Any]]:
    """The children of a zone by name; those that were not polled yet are left out."""
    zones = api.ask("GET", f"{C}/zones/detail").json()["zones"]
    return {zone["name"]: zone for zone in zones if zone["name"]}


def test_page_leads_through_the_tree(tree: ZoneTree) -> None:
    page = (ROOT / "docs" / "zones.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    script = "set -eu\n" + "\n".join(blocks)
    ran = subprocess.run(
        ["bash", "-c", script], env=tree.environ, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "child-1" in ran.stdout
    assert "ACTIVE" in ran.stdout
    assert tree.run("parent", "zone", "set", "child-2", "--weight-offset", "0").returncode == 0


def test_server_two_zones_below_is_used_from_the_parent(tree: ZoneTree) -> None:
    parent, server_id = tree.api("parent"), boot(tree.api("grandchild"), "deep")
    assert status(parent, server_id) == "ACTIVE"
    for action, then in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
        assert parent.ask("POST", f"{C}/servers/{server_id}/action", {action: None}).status_code == 202
        await_so(lambda then=then: status(parent, server_id) == then, SECONDS, action)  # type: ignore[misc]
    assert tree.api("parent", "climate-demo").ask("GET", f"{C}/servers/{server_id}").status_code == 404
    assert parent.ask("DELETE", f"{C}/servers/{server_id}").status_code == 204
    await_so(lambda: status(parent, server_id) == "404", SECONDS, "the deletion")
    assert status(tree.api("grandchild"), server_id) == "404"


def test_child_that_is_killed_is_missed_and_comes_back(tree: ZoneTree) -> None:
    parent = tree.api("parent")
    deep, lost = boot(tree.api("grandchild"), "deep"), boot(tree.api("child-2"), "lost")
    await_so(lambda: status(parent, lost) == "ACTIVE", SECONDS, "the server of child-2")
    environ = tree.kill("child-2")
    await_so(lambda: not children(parent)["child-2"]["is_active"], SECONDS, "the loss of child-2")
    assert status(parent, deep) == "ACTIVE", "the other children are as before"
    assert status(parent, lost) == "404"
    listed = parent.ask("GET", f"{C}/servers?recurse_zones=1&all_tenants=1").json()
    assert [zone["api_url"] for zone in listed["unreachable_zones"]] == [children(parent)["child-2"]["api_url"]]
    told = parent.ask("GET", "/reservation/v1/notices?kind=zone.inactive").json()["notices"]
    assert "child-2" in told[-1]["message"]
    tree.begin(environ)
    await_so(lambda: children(parent)["child-2"]["is_active"], 600, "the return of child-2")
    await_so(lambda: status(parent, lost) != "404", SECONDS, "the server of child-2")
