"""The rules of a policy file, as those meet them who ask the API."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from climate.context import Climate
from climate.settings import SettingError, Settings
from tests.api.reservation.api_clients import Deployment, Person, order
from tests.flask_apps import app_of


def app_with(climate: Climate, home: Path, **rules: str) -> Flask:
    (home / "policy.json").write_text(json.dumps({name.replace("__", ":"): rule for name, rule in rules.items()}))
    settings = Settings(home=home, public_url="http://here", policy_file="policy.json")
    return app_of(Deployment(settings, replace(climate)))


def test_a_reader_may_see_hosts_where_the_file_says_so(climate: Climate, tmp_path: Path) -> None:
    rules = {"blazar__oshosts__get": "rule:project_reader_or_admin", "blazar__oshosts__get_allocations": "!"}
    app = app_with(climate, tmp_path, **rules)
    reader, admin = Person(app, "reader"), Person(app, "admin")
    assert len(reader.get("/os-hosts")["hosts"]) == 8
    assert reader("POST", "/os-hosts", {"name": "h9"}).status_code == 403
    refused = admin("GET", "/os-hosts/allocations")
    assert refused.status_code == 403
    assert refused.json["error_message"] == "Policy doesn't allow climate:oshosts:get_allocations to be performed"


def test_members_may_be_kept_from_making_leases(climate: Climate, tmp_path: Path) -> None:
    app = app_with(climate, tmp_path, blazar__leases__post="role:admin", blazar__leases__get="project_id:project")
    assert Person(app, "member")("POST", "/leases", order()).status_code == 403
    assert Person(app, "stranger")("GET", "/leases").status_code == 403
    assert Person(app, "reader").get("/leases") == {"leases": []}
    assert Person(app, "admin")("POST", "/leases", order()).status_code == 201


def test_no_rule_opens_the_leases_of_another_project(climate: Climate, tmp_path: Path) -> None:
    rules = dict.fromkeys(("blazar__leases__get", "blazar__leases__put", "blazar__leases__delete"), "@")
    app = app_with(climate, tmp_path, **rules)
    lease, stranger = Person(app, "member").lease(), Person(app, "stranger")
    path = f"/leases/{lease['id']}"
    answers = [stranger("GET", path), stranger("PUT", path, {"name": "n"}), stranger("DELETE", path)]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert stranger.get("/leases") == {"leases": []}


def test_a_bad_file_makes_no_application(climate: Climate, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="there is no rule 'nobody'"):
        app_with(climate, tmp_path, blazar__leases__get="rule:nobody")
