"""An app with views that do nothing but what a test wants to see."""

import io
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog
from flask import Flask
from sqlalchemy import text

from climate import log_setup
from climate.identity import projects_and_users, roles
from climate.identity.audit_trail import SETUP
from climate.identity.store.assignments import Holder
from climate.store.tables import metadata
from tests.api.echo_views import with_echo
from tests.identity.identity_factory import Asker, Place, place


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str], cloud_template: str) -> str:
    return make_database(cloud_template)


@pytest.fixture(scope="session")
def here(scratch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A deployment with the engine's tables, for tests that leave no trace in it."""
    with place(scratch, tmp_path_factory.mktemp("home")) as found:
        metadata.create_all(found.identity.engine)
        user = projects_and_users.create_user(
            found.identity, SETUP, projects_and_users.NewUser("reader", found.password("demo"))
        )
        with found.identity.engine.connect() as conn:
            project = conn.execute(text("SELECT id FROM identity_projects WHERE name = 'demo'")).scalar_one()
        roles.assign(found.identity, SETUP, Holder(user.id), project, "reader")
        yield found


@pytest.fixture(scope="session")
def app(here: Place) -> Flask:
    return with_echo(here)


@pytest.fixture(scope="session")
def signed_in(app: Flask, here: Place) -> Callable[[str], Asker]:
    def sign_in(user: str) -> Asker:
        asker = Asker(app)
        password = here.password("admin" if user == "admin" else "demo")
        assert asker.sign_in(user, password, "admin" if user == "admin" else "demo").status_code == 201
        return asker

    return sign_in


@pytest.fixture(scope="session")
def demo(signed_in: Callable[[str], Asker]) -> Asker:
    return signed_in("demo")


@pytest.fixture(autouse=True)
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, as JSON lines."""
    root = logging.getLogger()
    before, stream = (root.handlers[:], root.level), io.StringIO()
    log_setup.configure("json", "DEBUG", stream)
    yield stream
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    structlog.reset_defaults()
