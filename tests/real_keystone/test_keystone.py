"""A real Keystone is the identity: its users, roles and refusals are climate's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from keystoneauth1 import session
from keystoneauth1.identity import v3

from climate.cli import run
from climate.domain.errors import NotAuthenticated, Unavailable
from climate.domain.policy import DEFAULTS, Caller
from climate.identity import keystone
from climate.identity.keystone.service import KeystoneIdentity
from climate.settings import Settings
from tests.real_keystone.keystone_process import ADMIN, PASSWORD, RealKeystone, installed, running, start
from tests.real_keystone.record_keystone import RECORDED, normal, recorded

PROGRAMS = installed()
"""The folder of Keystone's programs."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAMS is None, reason="no Keystone is installed: `make test-keystone` installs one"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's own code
]

URL = "http://climate.example.org:8000"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKeystone]:
    with running(cast("Path", PROGRAMS), tmp_path_factory.mktemp("keystone")) as found:
        yield found


def clouds(there: RealKeystone, folder: Path, user: str = "climate", project: str = "service") -> Path:
    path = folder / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"keystone": there.cloud(user, project, region_name="RegionOne")}}))
    return path


def identity_of(there: RealKeystone, folder: Path, cache: float = 0, user: str = "climate") -> KeystoneIdentity:
    settings = Settings(
        home=folder,
        identity="keystone",
        keystone_cloud="keystone",
        keystone_config=str(clouds(there, folder, user)),
        keystone_cache_seconds=cache,
        keystone_seconds=60,
    )
    return keystone.of(settings, DEFAULTS)


@pytest.fixture
def identity(there: RealKeystone, tmp_path: Path) -> KeystoneIdentity:
    return identity_of(there, tmp_path)


def caller(identity: KeystoneIdentity, token: str) -> Caller:
    return identity.authenticate({"X-Auth-Token": token})


def test_users_have_the_ids_and_roles_of_keystone(there: RealKeystone, identity: KeystoneIdentity) -> None:
    user = there.user("ann", "physics", "member")
    found = caller(identity, there.token("ann", "physics"))
    assert (found.user_id, found.user_name) == (user, "ann")
    assert (found.project_id, found.project_name) == (there.project("physics"), "physics")
    assert found.roles == {"member", "reader"}
    assert caller(identity, there.token(ADMIN, ADMIN)).is_admin


def test_revoked_tokens_and_disabled_users_are_refused(there: RealKeystone, identity: KeystoneIdentity) -> None:
    user = there.user("bob", "physics", "member")
    first, second = there.token("bob", "physics"), there.token("bob", "physics")
    caller(identity, first)
    there.ask("DELETE", "/auth/tokens", first, headers={"X-Subject-Token": first})
    with pytest.raises(NotAuthenticated):
        caller(identity, first)
    caller(identity, second)
    there.admin("PATCH", f"/users/{user}", json={"user": {"enabled": False}})
    with pytest.raises(NotAuthenticated):
        caller(identity, second)


def test_a_revoked_token_is_cached_as_long_as_the_setting_says(there: RealKeystone, tmp_path: Path) -> None:
    there.user("carl", "physics", "member")
    long = identity_of(there, tmp_path, cache=3600)
    token = there.token("carl", "physics")
    caller(long, token)
    there.ask("DELETE", "/auth/tokens", token, headers={"X-Subject-Token": token})
    assert caller(long, token).user_name == "carl"


def test_an_application_credential_signs_in(there: RealKeystone, identity: KeystoneIdentity) -> None:
    user = there.user("dora", "physics", "member")
    body = {"application_credential": {"name": "ci", "roles": [{"name": "reader"}]}}
    path = f"/users/{user}/application_credentials"
    made = there.ask("POST", path, there.token("dora", "physics"), json=body).json()["application_credential"]
    plugin = v3.ApplicationCredential(
        there.url, application_credential_id=made["id"], application_credential_secret=made["secret"]
    )
    found = caller(identity, session.Session(plugin).get_token())
    assert (found.user_id, found.roles) == (user, {"reader"})


@pytest.mark.parametrize("scope", [{"system_scope": "all"}, {"domain_id": "default"}, {"unscoped": True}])
def test_tokens_without_a_project_have_no_roles(
    there: RealKeystone, identity: KeystoneIdentity, scope: dict[str, Any]
) -> None:
    me = there.ask("GET", "/users", there.token(ADMIN, ADMIN), params={"name": ADMIN}).json()["users"][0]["id"]
    there.admin("PUT", f"/domains/default/users/{me}/roles/{there.role('admin')}")
    plugin = v3.Password(there.url, username=ADMIN, password=PASSWORD, user_domain_id="default", **scope)
    found = caller(identity, session.Session(plugin).get_token())
    assert (found.project_id, found.roles) == ("", frozenset())


def test_a_user_without_the_role_service_cannot_validate(there: RealKeystone, tmp_path: Path) -> None:
    there.user("eve", "service", "member")
    with pytest.raises(Unavailable, match="refused climate's own credentials"):
        caller(identity_of(there, tmp_path, user="eve"), there.token(ADMIN, ADMIN))


def register(there: RealKeystone, folder: Path, user: str = ADMIN, *options: str) -> int:
    clouds(there, folder, user, user)
    environ = {"CLIMATE_HOME": str(folder)}
    return run(("--os-cloud", "keystone", "openstack", "register", "--url", URL, *options, "-f", "json"), environ)


def test_the_catalog_gets_the_service_once(
    there: RealKeystone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there.user("finn", "finn", "member")
    assert register(there, tmp_path, "finn") == 4
    for actions in (["created"] * 4, ["kept"] * 4):
        capsys.readouterr()
        assert register(there, tmp_path) == 0
        assert [row["action"] for row in json.loads(capsys.readouterr().out)] == actions
    (service,) = there.admin("GET", "/services", params={"type": "reservation"})["services"]
    endpoints = there.admin("GET", "/endpoints", params={"service_id": service["id"]})["endpoints"]
    assert {one["url"] for one in endpoints} == {f"{URL}/reservation/v1"}
    listed = there.sign_in("finn", "finn").json()["token"]["catalog"]
    assert [one["name"] for one in listed if one["type"] == "reservation"] == ["climate"]
    assert register(there, tmp_path, ADMIN, "--region", "nowhere") == 3


def test_an_outage_ends_when_keystone_is_back(there: RealKeystone, tmp_path: Path) -> None:
    known = identity_of(there, tmp_path)
    token = there.token(ADMIN, ADMIN)
    caller(known, token)
    there.stop()
    with pytest.raises(Unavailable):
        caller(known, token)
    start(cast("Path", PROGRAMS), there)
    assert caller(identity_of(there, tmp_path), token).is_admin


def test_the_fake_answers_as_the_real_one(tmp_path: Path) -> None:
    programs = cast("Path", PROGRAMS)
    with running(programs, tmp_path) as one:
        now = {name: normal(answer) for name, answer in recorded(programs, one).items()}
    before = {path.stem: normal(json.loads(path.read_text())) for path in RECORDED.glob("*.json")}
    assert now == before
