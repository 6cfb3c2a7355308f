"""climate user, against the bundled Identity."""

from pathlib import Path

import pytest

from tests.cli.accounts.conftest import Accounts

IN_ADMIN = ("--project", "admin", "--role", "reader")


def test_a_generated_password_is_shown_once_and_signs_in(accounts: Accounts) -> None:
    ran = accounts("user", "create", "alice", *IN_ADMIN, "--email", "alice@example.org", "-f", "json")
    assert "shown this once" in ran.err
    assert accounts.signs_in("alice", ran.data["password"])
    shown = accounts("user", "show", "alice", "-f", "json").data
    assert shown == {name: value for name, value in ran.data.items() if name != "password"}
    assert shown["email"] == "alice@example.org"


def test_a_password_comes_from_a_file_a_prompt_or_standard_input(accounts: Accounts, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("correct horse\n")
    from_file = accounts("user", "create", "one", *IN_ADMIN, "--password-file", str(file), "-f", "json")
    piped = accounts.typed("battery staple", "user", "create", "two", *IN_ADMIN, "--password-file", "-")
    typed = accounts.typed("paper clip\n", "user", "create", "three", *IN_ADMIN, "--password-prompt")
    assert "password" not in from_file.data
    said = "".join(ran.out + ran.err for ran in (from_file, piped, typed))
    assert not [word for word in ("horse", "staple", "clip") if word in said]
    assert accounts.signs_in("one", "correct horse")
    assert accounts.signs_in("two", "battery staple")
    assert accounts.signs_in("three", "paper clip")


def test_a_new_password_replaces_the_old_one(accounts: Accounts) -> None:
    first = accounts("user", "create", "alice", *IN_ADMIN, "-f", "value", "-c", "password").out.strip()
    second = accounts("user", "set", "alice", "--generate-password", "-f", "value", "-c", "password").out.strip()
    assert (accounts.signs_in("alice", first), accounts.signs_in("alice", second)) == (False, True)


def test_user_is_listed_changed_and_deleted(accounts: Accounts) -> None:
    accounts("user", "create", "bot", "--no-password")
    assert {row["name"] for row in accounts("user", "list", "-f", "json").data} == {"admin", "demo", "bot"}
    assert [row["name"] for row in accounts("user", "list", "--project", "demo", "-f", "json").data] == ["demo"]
    changed = accounts("user", "set", "bot", "--name", "robot", "--project", "demo", "--disable", "-f", "json").data
    demo = accounts("project", "show", "demo", "-f", "value", "-c", "id").out.strip()
    assert (changed["name"], changed["enabled"], changed["default_project_id"]) == ("robot", False, demo)
    assert accounts("user", "delete", "robot").code == 0
    assert accounts("user", "show", "robot").code == 3


def test_a_member_sees_itself_only(accounts: Accounts) -> None:
    demo = ("--os-cloud", "climate-demo", "user")
    assert accounts(*demo, "show", "demo", "-f", "json").data["name"] == "demo"
    assert accounts(*demo, "list").code == 4
    assert accounts(*demo, "show", "admin").code == 4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--role", "member"), "--role needs --project"),
        (("--no-password", "--password-prompt"), "--no-password"),
        (("--password-prompt", "--password-file", "-"), "give one of"),
        (("--password-file", "/no/such/file"), "/no/such/file cannot be read"),
        (("--password-file", "/dev/null"), "in one line"),
    ],
)
def test_contradicting_options_are_refused_before_anything_is_created(
    accounts: Accounts, options: tuple[str, ...], says: str
) -> None:
    ran = accounts("user", "create", "alice", *options)
    assert (ran.code, says in ran.err) == (2, True)
    assert accounts("user", "show", "alice").code == 3


def test_an_unknown_role_creates_no_user(accounts: Accounts) -> None:
    assert accounts("user", "create", "alice", "--project", "demo", "--role", "king").code == 3
    assert accounts("user", "show", "alice").code == 3
    assert "nothing to change" in accounts("user", "set", "demo").err
