"""Whether a user still has a role in a project, asked without a token."""

import pytest

from climate.identity.models import AccountNames
from tests.api.web.views.test_statement_counts import counted
from tests.identity.identity_factory import Asker, Place


@pytest.mark.parametrize("disabled", [None, "users", "projects"])
def test_may_read(here: Place, admin: Asker, demo: Asker, disabled: str | None) -> None:
    token = demo.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token}).get_json()["token"]
    user, project = token["user"]["id"], token["project"]["id"]
    assert here.identity.may_read(user, project)
    if disabled:
        key, wanted = disabled.removesuffix("s"), {"users": user, "projects": project}[disabled]
        admin.ask("PATCH", f"/identity/v3/{disabled}/{wanted}", json={key: {"enabled": False}})
    assert here.identity.may_read(user, project) is (disabled is None)
    assert not here.identity.may_read(user, "other-project")
    assert not here.identity.may_read("other-user", project)


def test_unknown_accounts_are_those_of_no_project_and_no_user(here: Place, demo: Asker) -> None:
    token = demo.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token}).get_json()["token"]
    user, project = token["user"]["id"], token["project"]["id"]
    assert here.identity.unknown_accounts([project, "nope"], [user, "who"]) == ({"nope"}, {"who"})
    assert here.identity.unknown_accounts([], []) == (set(), set())


def test_names_of_ids_and_ids_of_names(here: Place, demo: Asker) -> None:
    token = demo.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token}).get_json()["token"]
    user, project = token["user"]["id"], token["project"]["id"]
    with counted(here.identity.engine) as found:
        known = here.identity.names([user, "who", project], [project, "nope", user])
    assert known == AccountNames({user: "demo"}, {project: "demo"})
    assert len(found) == 1
    assert here.identity.names([], []) == AccountNames()
    assert here.identity.account_ids("demo", "demo") == (user, project)
    assert here.identity.account_ids("who", "") == (None, None)
    assert here.identity.account_ids("", "demo") == (None, project)
