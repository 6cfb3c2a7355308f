"""Rows of users that the deletion of a project locks."""

from sqlalchemy import text

from climate.identity.store import users
from tests.identity.identity_factory import Place

FREE = text("SELECT name FROM identity_users ORDER BY name FOR UPDATE SKIP LOCKED")


def test_users_with_a_default_project_are_locked_and_no_others(here: Place) -> None:
    engine = here.identity.engine
    with engine.begin() as conn:
        project = conn.scalar(text("SELECT id FROM identity_projects WHERE name = 'demo'"))
        users.lock_with_default(conn, project)
        with engine.begin() as other:
            assert list(other.scalars(FREE)) == ["admin"]
    with engine.begin() as conn:
        assert list(conn.scalars(FREE)) == ["admin", "demo"]
