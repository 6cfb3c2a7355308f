"""climate admin-password and climate clouds: access is recovered on the machine of the database."""

import yaml

from climate.cli.accounts import password_options
from tests.cli.accounts.conftest import Accounts


def test_a_lost_password_is_reset(accounts: Accounts) -> None:
    old = accounts.place.password("admin")
    accounts("user", "set", "admin", "--generate-password")
    for name in ("clouds.yaml", "admin-password"):
        (accounts.home / name).unlink()
    ran = accounts("admin-password", "reset")
    new = ran.out.strip()
    assert (ran.code, len(new)) == (0, password_options.LENGTH)
    assert (accounts.signs_in("admin", old), accounts.signs_in("admin", new)) == (False, True)
    assert accounts("project", "list").code == 0
    assert accounts.place.password("admin") == new
    modes = {(accounts.home / name).stat().st_mode & 0o777 for name in ("clouds.yaml", "admin-password")}
    assert modes == {0o600}


def test_a_reset_undoes_what_locked_the_administrator_out(accounts: Accounts) -> None:
    in_admin = ("--user", "admin", "--project", "admin")
    accounts("user", "create", "other", "--project", "demo", "--role", "admin")
    assert accounts("role", "remove", "admin", *in_admin).code == 0
    assert accounts("project", "list").code == 4
    assert accounts.typed("correct horse\n", "admin-password", "reset", "--password-prompt").code == 0
    assert accounts.signs_in("admin", "correct horse")
    assert accounts("user", "list").code == 0


def test_a_reset_is_recorded_without_the_password(accounts: Accounts) -> None:
    password = accounts("admin-password", "reset").out.strip()
    (entry,) = accounts("audit", "--author", "climate:recovery", "--limit", "1", "-f", "json").data
    assert (entry["kind"], entry["name"], entry["after"]) == ("user", "admin", {"password": "changed"})
    assert password not in str(entry)


def test_a_reset_keeps_other_clouds_and_the_address(accounts: Accounts) -> None:
    file = accounts.home / "clouds.yaml"
    before = yaml.safe_load(file.read_text())["clouds"]
    file.write_text(yaml.safe_dump({"clouds": {**before, "elsewhere": {"auth": {"auth_url": "https://elsewhere"}}}}))
    accounts.environ["CLIMATE_PORT"] = "1"
    assert accounts("admin-password", "reset").code == 0
    after = yaml.safe_load(file.read_text())["clouds"]
    assert after["climate"]["auth"]["auth_url"] == before["climate"]["auth"]["auth_url"]
    assert after["climate"]["auth"]["password"] != before["climate"]["auth"]["password"]
    assert after["climate-demo"] == before["climate-demo"]
    assert "elsewhere" in after


def test_a_bad_password_or_home_changes_nothing(accounts: Accounts) -> None:
    old = accounts.place.password("admin")
    assert accounts.typed("short\n", "admin-password", "reset", "--password-prompt").code == 2
    accounts.environ["CLIMATE_IDENTITY"] = "keystone"
    assert "Keystone's" in accounts("admin-password", "reset").err
    del accounts.environ["CLIMATE_IDENTITY"]
    assert accounts.signs_in("admin", old)
    accounts.environ["CLIMATE_HOME"] = str(accounts.home / "other")
    for command in (("admin-password", "reset"), ("clouds", "write")):
        ran = accounts(*command)
        assert (ran.code, "no climate has run" in ran.err) == (2, True)
    assert not (accounts.home / "other").exists()
