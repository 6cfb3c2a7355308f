"""climate credential, against the bundled Identity."""

from climate.cli import run
from tests.cli.accounts.conftest import Accounts

DEMO = ("--os-cloud", "climate-demo", "credential")


def test_a_program_signs_in_with_a_credential_until_it_is_deleted(accounts: Accounts) -> None:
    made = accounts(*DEMO, "create", "ci", "--role", "reader", "--expiration", "+30d", "-f", "json")
    assert "shown this once" in made.err
    assert (made.data["roles"], made.data["unrestricted"]) == ("reader", False)
    assert made.data["expires_at"]
    program = {
        "CLIMATE_HOME": "/nowhere",
        "OS_AUTH_URL": f"{accounts.place.settings.base_url}/identity/v3",
        "OS_APPLICATION_CREDENTIAL_ID": made.data["id"],
        "OS_APPLICATION_CREDENTIAL_SECRET": made.data["secret"],
    }
    assert run(("project", "list"), program) == 0
    assert accounts(*DEMO, "delete", "ci").code == 0
    assert run(("project", "list"), program) == 4


def test_lists_and_details_have_no_secret(accounts: Accounts) -> None:
    made = accounts(*DEMO, "create", "ci", "-f", "json").data
    shown = accounts(*DEMO, "show", "ci", "-f", "json")
    listed = accounts(*DEMO, "list", "-f", "json")
    assert (shown.data["id"], listed.data[0]["id"]) == (made["id"], made["id"])
    assert made["secret"] not in shown.out + listed.out
    assert accounts("credential", "list", "-f", "json").data == []


def test_a_role_that_the_caller_lacks_is_refused(accounts: Accounts) -> None:
    refused = accounts(*DEMO, "create", "ci", "--role", "admin")
    assert (refused.code, "roles must be among" in refused.err) == (2, True)
    assert accounts(*DEMO, "show", "ci").code == 3
