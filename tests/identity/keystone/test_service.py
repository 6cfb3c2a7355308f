"""Requests are authenticated by Keystone: its ids, its roles, its refusals."""

import pytest

from climate.domain.errors import NotAuthenticated, Unavailable
from climate.domain.policy import Caller, policy_of
from climate.identity.keystone.service import KeystoneIdentity
from tests.identity.keystone.fake_keystone import ALPHA, LATE, OWN, FakeKeystone, body
from tests.identity.keystone.hands import Hands

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


def caller(identity: KeystoneIdentity, token: str, **more: str) -> Caller:
    return identity.authenticate({"X-Auth-Token": token, **more})


def test_users_and_projects_are_those_of_keystone(identity: KeystoneIdentity) -> None:
    found, token = caller(identity, ALPHA), body("valid")["token"]
    assert (found.user_id, found.user_name) == (token["user"]["id"], "alpha")
    assert (found.project_id, found.project_name) == (token["project"]["id"], "alpha")
    assert found.roles == {"member", "reader"}


@pytest.mark.parametrize("token", ["", "notused", "x" * 5000, "späße", "a b", "a\tb"])
def test_no_token_is_sent_to_keystone_that_cannot_be_one(
    identity: KeystoneIdentity, fake: FakeKeystone, token: str
) -> None:
    with pytest.raises(NotAuthenticated):
        caller(identity, token)
    assert fake.log == []


def test_an_unknown_token_is_refused_and_never_cached(identity: KeystoneIdentity, fake: FakeKeystone) -> None:
    for _ in range(2):
        with pytest.raises(NotAuthenticated):
            caller(identity, "nonsense")
    assert fake.validations() == 2
    assert len(identity.cache) == 0


def test_a_revocation_applies_when_the_cache_time_is_over(
    identity: KeystoneIdentity, fake: FakeKeystone, hands: Hands
) -> None:
    caller(identity, ALPHA)
    fake.revoked.add(ALPHA)
    hands.go_on(0.5)
    caller(identity, ALPHA)
    assert fake.validations() == 1
    hands.go_on(60)
    with pytest.raises(NotAuthenticated):
        caller(identity, ALPHA)


def test_a_cached_token_is_refused_when_expired(identity: KeystoneIdentity, fake: FakeKeystone, hands: Hands) -> None:
    caller(identity, ALPHA)
    hands.now += 3600 * 24
    fake.revoked.add(ALPHA)
    with pytest.raises(NotAuthenticated):
        caller(identity, ALPHA)
    assert fake.validations() == 2


def test_an_expired_token_is_accepted_from_a_service_alone(identity: KeystoneIdentity) -> None:
    with pytest.raises(NotAuthenticated):
        caller(identity, LATE)
    found = caller(identity, LATE, **{"X-Service-Token": OWN})
    assert found.user_name == "alpha"
    for another in (ALPHA, "nonsense"):
        with pytest.raises(NotAuthenticated):
            caller(identity, LATE, **{"X-Service-Token": another})
    with pytest.raises(NotAuthenticated):
        caller(identity, LATE)  # what was cached for a service is not for others


def test_roles_are_mapped_by_the_policy(identity: KeystoneIdentity, fake: FakeKeystone) -> None:
    token = body("valid")["token"]
    for number, roles in enumerate((["admin", "Observer"], ["Cloud_Admin"], ["leaser"])):
        fake.more[f"t{number}"] = {"token": {**token, "roles": [{"id": one, "name": one} for one in roles]}}
    rules = {"climate_admin": "role:cloud_admin", "climate_member": "rule:climate_admin or role:leaser"}
    mapped = KeystoneIdentity(
        identity.keystone, policy_of({}, rules), identity.cache, identity.service_role, identity.public_url
    )
    assert caller(mapped, "t0").roles == {"observer"}
    assert caller(mapped, "t1").roles == {"admin", "member", "cloud_admin"}
    assert caller(mapped, "t2").roles == {"member", "leaser"}
    assert caller(identity, "t0").roles == {"admin", "observer"}


def test_a_rule_may_name_a_project(identity: KeystoneIdentity) -> None:
    project = body("valid")["token"]["project"]["id"]
    for named, roles in ((project, {"admin", "member", "reader"}), ("another", {"member", "reader"})):
        rule = policy_of({}, {"climate_admin": f"role:member and project_id:{named}"})
        mapped = KeystoneIdentity(identity.keystone, rule, identity.cache, "service", "")
        assert caller(mapped, ALPHA).roles == roles


def test_a_token_without_a_project_has_no_roles(identity: KeystoneIdentity, fake: FakeKeystone) -> None:
    token = {key: value for key, value in body("valid")["token"].items() if key != "project"}
    fake.more["system"] = {"token": {**token, "system": {"all": True}, "roles": [{"id": "1", "name": "admin"}]}}
    found = caller(identity, "system")
    assert (found.project_id, found.roles) == ("", frozenset())


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "{}", '{"token": 1}', '{"token": {}}', '{"token": {"user": {"id": "a"}}}']
)
def test_an_answer_that_is_no_token_is_unavailable(identity: KeystoneIdentity, fake: FakeKeystone, text: str) -> None:
    fake.text = text
    with pytest.raises(Unavailable, match="could not be read"):
        caller(identity, ALPHA)
