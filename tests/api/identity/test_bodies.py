"""Bodies of users, projects and application credentials."""

from typing import Any

import pytest

from api.identity import bodies
from api.schema.body import Below
from climate.domain.errors import InvalidInput


def test_defaults_of_a_new_user_and_project() -> None:
    user = bodies.USER.read({"user": {"name": "u", "enabled": None, "other": 1}, "beside": 1})
    assert (user["enabled"], user["description"], user["password"], user["extra"]) == (True, "", None, {"other": 1})
    defaults = {"description": "", "enabled": True, "domain_id": None, "parent_id": None, "tags": ()}
    assert bodies.PROJECT.read({"project": {"name": "p"}}) == {"name": "p", **defaults}


def test_change_has_only_the_keys_that_are_given() -> None:
    given = {"description": None, "default_project_id": None}
    assert bodies.CHANGED_USER.read({"user": given}) == {"description": "", "default_project_id": None}
    assert bodies.CHANGED_PROJECT.read({"project": {}}) == {}


def test_roles_and_time_of_a_credential() -> None:
    given = {"name": "c", "roles": [{"name": "member"}], "expires_at": "2030-01-31T12:00:00"}
    found = bodies.CREDENTIAL.read({"application_credential": given})
    assert (found["roles"], found["expires_at"].year, found["unrestricted"]) == (("member",), 2030, False)


@pytest.mark.parametrize(
    ("body", "given", "says"),
    [
        (bodies.USER, {}, "name must be a text"),
        (bodies.USER, {"name": "u", "password": ""}, "password must be a text"),
        (bodies.USER, {"name": "u", "enabled": "yes"}, "enabled must be true or false"),
        (bodies.CHANGED_USER, {"enabled": None}, "enabled must be true or false"),
        (bodies.CHANGED_PASSWORD, {"password": "p"}, "original_password must be a text"),
        (bodies.CREDENTIAL, {"name": "c", "roles": ["x"]}, "roles must be a list of objects with id or name"),
        (bodies.PROJECT, {"name": "p", "is_domain": True}, "is_domain must be false"),
        (bodies.PROJECT, {"name": "p", "tags": ["a", "a"]}, "tags must be at most 80, each once"),
        (bodies.PROJECT, {"name": "p", "tags": ["a/b"]}, "A tag must have 1 to 255 characters"),
        (bodies.PROJECT, {"name": "p", "parent_id": 5}, "parent_id must be a text"),
        (bodies.CREDENTIAL, {"name": "c", "expires_at": "x"}, "expires_at must be a date and time like"),
        (bodies.CREDENTIAL, {"name": "c", "expires_at": "1999-01-01"}, "expires_at is out of range"),
        (bodies.CREDENTIAL, {"name": "c", "access_rules": [{}]}, "access_rules are not supported; omit them"),
    ],
)
def test_refused_keys(body: Below, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read({body.key: given})
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(("given", "expected"), [("default", None), (None, None), ("other", "other")])
def test_the_default_domain_of_a_new_user_or_project_is_none(given: str | None, expected: str | None) -> None:
    for body, key in ((bodies.USER, "user"), (bodies.PROJECT, "project")):
        assert body.read({key: {"name": "n", "domain_id": given}})["domain_id"] == expected


def test_names_of_users_may_be_longer_than_those_of_projects() -> None:
    assert bodies.USER.read({"user": {"name": "u" * 255}})["name"] == "u" * 255
    for body, key, length in ((bodies.USER, "user", 256), (bodies.PROJECT, "project", 65)):
        with pytest.raises(InvalidInput, match=f"1 to {length - 1} characters"):
            body.read({key: {"name": "n" * length}})
