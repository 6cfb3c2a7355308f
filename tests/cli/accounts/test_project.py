"""climate project, against the bundled Identity."""

from tests.cli.accounts.conftest import Accounts


def test_project_is_created_listed_shown_changed_and_deleted(accounts: Accounts) -> None:
    made = accounts("project", "create", "lab", "--description", "Robots", "-f", "json").data
    assert (made["name"], made["description"], made["enabled"]) == ("lab", "Robots", True)
    assert {row["name"] for row in accounts("project", "list", "-f", "json").data} == {"admin", "demo", "lab"}
    assert accounts("project", "show", made["id"], "-f", "value", "-c", "name").out == "lab\n"
    changed = accounts("project", "set", "lab", "--name", "robots", "--disable", "-f", "json").data
    assert (changed["id"], changed["name"], changed["enabled"]) == (made["id"], "robots", False)
    assert changed["description"] == "Robots"
    assert accounts("project", "delete", "robots").code == 0
    assert {row["name"] for row in accounts("project", "list", "-f", "json").data} == {"admin", "demo"}


def test_a_member_lists_its_own_projects_and_creates_none(accounts: Accounts) -> None:
    rows = accounts("--os-cloud", "climate-demo", "project", "list", "-f", "json").data
    assert [row["name"] for row in rows] == ["demo"]
    assert accounts("--os-cloud", "climate-demo", "project", "create", "mine").code == 4


def test_wrong_input_is_refused_in_a_sentence(accounts: Accounts) -> None:
    assert accounts("project", "create", "admin").code == 5
    unknown = accounts("project", "show", "nowhere")
    assert (unknown.code, "`climate project list`" in unknown.err) == (3, True)
    nothing = accounts("project", "set", "demo")
    assert (nothing.code, "nothing to change" in nothing.err) == (2, True)
    assert "your own token" in accounts("project", "delete", "admin").err
