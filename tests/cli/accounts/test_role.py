"""climate role, against the bundled Identity."""

from tests.cli.accounts.conftest import Accounts

IN_DEMO = ("--user", "alice", "--project", "demo")


def roles_of(accounts: Accounts, user: str) -> list[tuple[str, str]]:
    rows = accounts("role", "assignment", "list", "--user", user, "-f", "json").data
    return [(row["project"], row["role"]) for row in rows]


def test_roles_are_listed_and_shown(accounts: Accounts) -> None:
    listed = accounts("role", "list", "-f", "value", "-c", "name").out.split()
    assert listed == ["admin", "manager", "member", "reader", "service"]
    assert accounts("role", "show", "member", "-f", "json").data == {"id": "member", "name": "member"}
    assert accounts("role", "show", "king").code == 3


def test_role_is_assigned_and_removed(accounts: Accounts) -> None:
    accounts("user", "create", "alice")
    assert accounts("role", "add", "member", *IN_DEMO).code == 0
    assert roles_of(accounts, "alice") == [("demo", "member")]
    assert accounts("role", "remove", "member", *IN_DEMO).code == 0
    assert roles_of(accounts, "alice") == []
    assert accounts("role", "remove", "member", *IN_DEMO).code == 3


def test_assignments_are_chosen_by_project_and_role(accounts: Accounts) -> None:
    accounts("user", "create", "alice", "--project", "demo", "--role", "reader")
    listed = ("role", "assignment", "list", "-f", "value", "-c", "user")
    assert accounts(*listed, "--project", "demo").out.split() == ["alice", "demo"]
    assert accounts(*listed, "--role", "reader").out.split() == ["alice"]


def test_a_member_lists_its_own_assignments_only(accounts: Accounts) -> None:
    asked = ("--os-cloud", "climate-demo", "role", "assignment", "list")
    assert accounts(*asked, "--user", "demo", "-f", "value", "-c", "role").out == "member\n"
    assert accounts(*asked).code == 4
