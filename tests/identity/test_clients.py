"""The real clients sign in by every way they know."""

import socket
from collections.abc import Iterator
from pathlib import Path

import openstack
import pytest
from keystoneauth1 import exceptions, loading, session
from keystoneauth1.identity import v3
from openstack.connection import Connection

from climate.settings import Settings
from tests.identity.identity_factory import Place, app_of, place, served

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")


@pytest.fixture(scope="module")
def there(scratch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home: Path = tmp_path_factory.mktemp("home")
    with place(scratch, home, Settings(home=home, port=port)) as found, served(app_of(found), port):
        yield found


def cloud(there: Place, name: str) -> Connection:
    loader = openstack.config.OpenStackConfig(
        config_files=[str(there.settings.home / "clouds.yaml")], load_envvars=False
    )
    return Connection(config=loader.get_one(cloud=name))


def auth_url(there: Place) -> str:
    return f"{there.settings.base_url}/identity/v3"


def test_the_clouds_of_the_first_start_sign_in(there: Place) -> None:
    for name, role, project in (("climate", "admin", "admin"), ("climate-demo", "member", "demo")):
        connection = cloud(there, name)
        access = connection.session.auth.get_access(connection.session)
        assert access.role_names == [role]
        assert access.project_name == project
        assert connection.session.get_endpoint(service_type="reservation").endswith("/reservation/v1")
        assert connection.session.get_endpoint(service_type="compute").endswith("/compute/v2.1")


def test_an_unversioned_auth_url_is_enough(there: Place) -> None:
    generic = loading.get_plugin_loader("password").load_from_options(
        auth_url=f"{there.settings.base_url}/identity",
        username="demo",
        password=there.password("demo"),
        project_name="demo",
        user_domain_id="default",
        project_domain_id="default",
    )
    assert session.Session(auth=generic).get_token()


def test_a_token_gets_another_for_another_project(there: Place) -> None:
    admin = cloud(there, "climate")
    demo = admin.identity.find_project("demo")
    me = admin.identity.find_user("admin")
    admin.identity.assign_project_role_to_user(demo.id, me.id, admin.identity.find_role("member").id)
    first = admin.session.get_token()
    second = session.Session(v3.Token(auth_url(there), token=first, project_id=demo.id))
    assert second.auth.get_access(second).project_name == "demo"
    assert second.auth.get_access(second).role_names == ["member"]


def test_an_application_credential_signs_in_by_id_and_by_name(there: Place) -> None:
    demo = cloud(there, "climate-demo")
    user = demo.session.get_user_id()
    made = demo.identity.create_application_credential(user, name="ci", secret=None, roles=[], access_rules=[])
    by_id = session.Session(
        v3.ApplicationCredential(
            auth_url(there), application_credential_id=made.id, application_credential_secret=made.secret
        )
    )
    by_name = session.Session(
        v3.ApplicationCredential(
            auth_url(there),
            application_credential_name="ci",
            username="demo",
            user_domain_name="Default",
            application_credential_secret=made.secret,
        )
    )
    for signed_in in (by_id, by_name):
        assert signed_in.get_project_id() == demo.session.get_project_id()
        assert signed_in.get(f"{auth_url(there)}/auth/projects").json()["projects"][0]["name"] == "demo"
    demo.identity.delete_application_credential(user, made.id)
    with pytest.raises(exceptions.Unauthorized):
        by_id.get(f"{auth_url(there)}/auth/projects")


def test_http_basic_is_a_proof_everywhere(there: Place) -> None:
    loader = loading.get_plugin_loader("http_basic")
    right = loader.load_from_options(username="demo", password=there.password("demo"), endpoint=auth_url(there))
    for _ in range(3):
        assert session.Session(right).get(f"{auth_url(there)}/auth/projects").json()["projects"][0]["name"] == "demo"
    wrong = loader.load_from_options(username="demo", password="not the password", endpoint=auth_url(there))
    with pytest.raises(exceptions.Unauthorized):
        session.Session(wrong).get(f"{auth_url(there)}/auth/projects")


def test_the_directory_as_the_sdk_uses_it(there: Place) -> None:
    admin = cloud(there, "climate")
    project = admin.identity.create_project(name="physics", domain_id="default")
    user = admin.identity.create_user(name="marie", password="polonium-210", default_project_id=project.id)
    role = admin.identity.find_role("reader")
    admin.identity.assign_project_role_to_user(project.id, user.id, role.id)
    assert admin.identity.validate_user_has_project_role(project.id, user.id, role.id)
    assert not admin.identity.validate_user_has_project_role(project.id, user.id, "admin")
    assert admin.identity.find_project("physics").id == project.id
    assert {one.name for one in admin.identity.users()} == {"admin", "demo", "marie"}
    assert {one.id for one in admin.identity.roles()} == {"admin", "manager", "member", "reader", "service"}
    assert [one.type for one in admin.identity.services()][:2] == ["identity", "compute"]
    assert len(list(admin.identity.endpoints())) == 18
    assert [one.id for one in admin.identity.regions()] == ["RegionOne"]
    named = list(admin.identity.role_assignments(include_names=True))
    assert {(one.user["name"], one.role["name"]) for one in named} >= {("marie", "reader"), ("admin", "admin")}
    admin.identity.unassign_project_role_from_user(project.id, user.id, role.id)
    assert not admin.identity.validate_user_has_project_role(project.id, user.id, role.id)
