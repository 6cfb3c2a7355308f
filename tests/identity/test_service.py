"""Whether a user still has a role in a project, asked without a token."""

import pytest

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
