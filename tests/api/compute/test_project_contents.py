"""Deletion of a project: resources refuse it, settings are deleted with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.adapters.project_contents import DeploymentContents
from climate.domain.errors import Conflict, NotFound
from climate.domain.limits import Limit
from climate.domain.policy import ADMIN, Caller
from climate.identity import Identity, build, projects_and_users, read_operations
from climate.identity.models import Project
from climate.identity.store import projects
from climate.identity.store.tables import metadata
from climate.settings import Settings
from climate.store import limits
from climate.store.engine import database_time
from tests.api.compute.api_clients import MEMBER, Person, World, done, hours_away
from tests.databases import create_tables, empty
from tests.identity.identity_factory import QUICK

C = "/compute/v2.1"
AUTHOR = Caller("operator", "p", frozenset({ADMIN}))
ID = MEMBER.project_id


@pytest.fixture
def identity(there: World, tmp_path: Path) -> Iterator[Identity]:
    """Identity in the database of the cloud, with the project of the member."""
    engine = there.climate.engine
    create_tables(engine.url, metadata)
    found = build(engine, Settings(home=tmp_path), QUICK, DeploymentContents())
    with engine.begin() as conn:
        projects.add(conn, Project(ID, "lab", "", enabled=True))
    yield found
    with engine.begin() as conn:
        empty(conn, metadata.sorted_tables)


def refusal(identity: Identity) -> str:
    with pytest.raises(Conflict) as refused:
        projects_and_users.remove_project(identity, AUTHOR, ID)
    assert read_operations.project(identity, ID).name == "lab"
    return str(refused.value)


def test_resources_keep_a_project(there: World, identity: Identity, member: Person) -> None:
    lease = {"name": "l", "start_date": hours_away(1), "end_date": hours_away(2), "events": []}
    one = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    made = done(member("POST", "/reservation/v1/leases", {**lease, "reservations": [one]}), 201)["lease"]["id"]
    server, image = member.booted(), done(member("POST", "/image/v2/images", {"name": "i"}), 201)["id"]
    assert refusal(identity).endswith("delete them first: 1 leases, 1 servers, 1 images")
    there.settle()
    done(member("DELETE", f"/reservation/v1/leases/{made}"), 204)
    done(member("DELETE", f"{C}/servers/{server}"), 204)
    there.settle()
    assert refusal(identity).endswith("delete them first: 1 images")
    done(member("DELETE", f"/image/v2/images/{image}"), 204)
    projects_and_users.remove_project(identity, AUTHOR, ID)
    with pytest.raises(NotFound):
        read_operations.project(identity, ID)


def test_settings_are_deleted_with_a_project(there: World, identity: Identity, member: Person) -> None:
    operator = Person(there.app, "admin")
    done(operator("PUT", f"{C}/os-quota-sets/{ID}", {"quota_set": {"instances": 2}}))
    done(operator("POST", f"{C}/flavors/secret/action", {"addTenantAccess": {"tenant": ID}}))
    done(member("POST", f"{C}/os-server-groups", {"server_group": {"name": "g", "policies": ["affinity"]}}))
    with there.climate.engine.begin() as conn:
        limits.store(conn, AUTHOR, ID, {Limit.LEASES: 3}, database_time(conn))
    projects_and_users.remove_project(identity, AUTHOR, ID)
    assert member.get(f"{C}/os-quota-sets/{ID}")["quota_set"]["instances"] == 50
    assert member.get(f"{C}/os-server-groups")["server_groups"] == []
    access = operator.get(f"{C}/flavors/secret/os-flavor-access")["flavor_access"]
    assert ID not in {one["tenant_id"] for one in access}
    with there.climate.engine.begin() as conn:
        assert not limits.of(conn, ID)


def test_resources_of_other_projects_do_not_count(there: World, identity: Identity, stranger: Person) -> None:
    stranger.booted()
    projects_and_users.remove_project(identity, AUTHOR, ID)
    with there.climate.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM compute_servers")) == 1
