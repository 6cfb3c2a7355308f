"""climate clouds: the entries of clouds.yaml, and its recovery."""

import yaml

from tests.cli.accounts.conftest import Accounts


def test_a_lost_file_is_written_again(accounts: Accounts) -> None:
    file = accounts.home / "clouds.yaml"
    before = file.read_text()
    file.unlink()
    assert accounts("project", "list").code == 2
    assert accounts("clouds", "write").code == 0
    assert file.read_text() == before
    assert file.stat().st_mode & 0o777 == 0o600
    assert accounts("project", "list").code == 0


def test_the_address_is_changed_on_request_and_kept_else(accounts: Accounts) -> None:
    file = accounts.home / "clouds.yaml"
    assert accounts("clouds", "write", "--url", "https://climate.example.org/identity/v3").code == 0
    assert accounts("clouds", "write").code == 0
    url = yaml.safe_load(file.read_text())["clouds"]["climate"]["auth"]["auth_url"]
    assert url == "https://climate.example.org/identity/v3"
    refused = accounts("clouds", "write", "--url", "nonsense")
    assert (refused.code, "--url is not a URL" in refused.err) == (2, True)


def test_a_password_that_nobody_knows_is_said(accounts: Accounts) -> None:
    for name in ("clouds.yaml", "admin-password"):
        (accounts.home / name).unlink()
    ran = accounts("clouds", "write")
    assert ran.code == 1
    assert "password of user admin is known to nobody" in ran.err
    assert "climate admin-password reset" in ran.err


def test_a_file_that_is_no_yaml_is_left_alone(accounts: Accounts) -> None:
    file = accounts.home / "clouds.yaml"
    file.write_text("clouds: [")
    ran = accounts("clouds", "write")
    assert (ran.code, file.read_text()) == (1, "clouds: [")
    assert "move it away" in ran.err


def test_clouds_are_listed_without_passwords(accounts: Accounts) -> None:
    ran = accounts("clouds", "list", "-f", "json")
    assert [(row["name"], row["user"], row["project"]) for row in ran.data] == [
        ("climate", "admin", "admin"),
        ("climate-demo", "demo", "demo"),
    ]
    assert accounts.place.password("admin") not in ran.out
