"""Domains as rows: the default one has none."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from climate.identity.models import DEFAULT_DOMAIN, Domain, NameOrId, Project, User
from climate.identity.store import assignments, domains, projects, users
from climate.identity.store.assignments import Holder
from tests.identity.identity_factory import Place

LAB = Domain("d", "Lab")


def user(user_id: str, domain_id: str | None = None, name: str = "ada") -> User:
    return User(user_id, name, "", f"{user_id}@lab", enabled=True, default_project_id=None, domain_id=domain_id)


def project(project_id: str, domain_id: str | None = None, parent_id: str | None = None, name: str = "p") -> Project:
    return Project(project_id, name, "", enabled=True, parent_id=parent_id, domain_id=domain_id)


@pytest.fixture
def conn(here: Place) -> Iterator[Connection]:
    """A transaction with users and projects of one name in two domains."""
    with here.identity.engine.begin() as conn:
        domains.add(conn, LAB)
        for domain_id, suffix in ((None, "0"), ("d", "1")):
            users.add(conn, user(f"u{suffix}", domain_id), None)
            projects.add(conn, project(f"p{suffix}", domain_id))
            assert assignments.add(conn, Holder(f"u{suffix}"), f"p{suffix}", "member")
        yield conn


@pytest.mark.parametrize(
    ("domain", "suffix"),
    [
        (None, "0"),
        (NameOrId(id="default"), "0"),
        (NameOrId(name="DEFAULT"), "0"),
        (NameOrId(id="d"), "1"),
        (NameOrId(name="lab"), "1"),
        (NameOrId(name="other"), None),
        (NameOrId(id="other"), None),
    ],
)
def test_a_name_is_looked_up_in_its_domain(conn: Connection, domain: NameOrId | None, suffix: str | None) -> None:
    found = (
        users.find(conn, NameOrId(name="ada", domain=domain)),
        projects.find(conn, NameOrId(name="p", domain=domain)),
    )
    assert [one and one.id for one in found] == ([f"u{suffix}", f"p{suffix}"] if suffix else [None, None])


@pytest.mark.parametrize("domain_id", [None, "d"])
def test_a_name_is_taken_once_in_a_domain(conn: Connection, domain_id: str | None) -> None:
    for add in (
        lambda: users.add(conn, user("other", domain_id), None),
        lambda: projects.add(conn, project("other", domain_id)),
    ):
        with pytest.raises(IntegrityError), conn.begin_nested():
            add()


def test_the_default_domain_is_found_without_a_row(conn: Connection) -> None:
    assert domains.find(conn, None) == domains.find(conn, "default") == DEFAULT_DOMAIN
    assert domains.lock(conn, "default") is None
    assert domains.listing(conn) == [DEFAULT_DOMAIN, LAB]


def test_a_disabled_domain_disables_its_users_and_projects(conn: Connection) -> None:
    def states() -> list[object]:
        found = [users.for_sign_in(conn, NameOrId(id=f"u{suffix}")) for suffix in "01"]
        return [
            [one[0].enabled for one in found if one],
            [assignments.is_active_member(conn, f"u{suffix}", f"p{suffix}") for suffix in "01"],
            [len(projects.usable(conn, f"u{suffix}")) for suffix in "01"],
            users.addresses(conn, ["u0", "u1"]),
            [domains.is_enabled(conn, domain_id) for domain_id in (None, "d", "unknown")],
        ]

    both = {"u0": "u0@lab", "u1": "u1@lab"}
    assert states() == [[True, True], [True, True], [1, 1], both, [True, True, False]]
    domains.change(conn, "d", {"enabled": False})
    assert states() == [[True, False], [True, False], [1, 0], {"u0": "u0@lab"}, [True, False, False]]


def test_contents_are_listed_with_projects_below_first(conn: Connection) -> None:
    projects.add(conn, project("p2", "d", "p1", "below"))
    projects.add(conn, project("p3", "d", "p2", "deeper"))
    assert domains.project_ids(conn, "d") == ["p3", "p2", "p1"]
    assert (domains.user_ids(conn, "d"), domains.group_ids(conn, "d")) == (["u1"], [])
