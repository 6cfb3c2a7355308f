"""The first start, the second, and the ones after accidents."""

from dataclasses import replace
from pathlib import Path

import yaml

from climate.identity import build, first_start
from climate.identity.store.tables import metadata
from tests.identity.identity_factory import QUICK, Asker, Place, app_of


def clouds(here: Place) -> dict[str, dict[str, object]]:
    return yaml.safe_load((here.settings.home / "clouds.yaml").read_text())["clouds"]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_it_makes_two_users_and_tells_the_password_once(here: Place) -> None:
    told = "\n".join(here.said)
    assert told.count(here.password("admin")) == 1
    assert here.password("demo") not in told
    home = here.settings.home
    assert {mode(home / name) for name in ("admin-password", "demo-password", "clouds.yaml")} == {0o600}
    assert set(clouds(here)) == {"climate", "climate-demo"}
    first_start(here.identity, here.settings, here.said.append)
    assert "\n".join(here.said) == told


def test_a_lost_clouds_yaml_is_recreated(here: Place) -> None:
    before = clouds(here)
    (here.settings.home / "clouds.yaml").unlink()
    first_start(here.identity, here.settings, here.said.append)
    assert clouds(here) == before


def test_what_cannot_be_recreated_is_said(here: Place) -> None:
    for name in ("clouds.yaml", "admin-password"):
        (here.settings.home / name).unlink()
    first_start(here.identity, here.settings, here.said.append)
    assert set(clouds(here)) == {"climate-demo"}
    assert "password of user admin is known to nobody here" in here.said[-1]


def test_clouds_yaml_follows_the_port_and_keeps_what_is_not_ours(here: Place) -> None:
    file = here.settings.home / "clouds.yaml"
    changed = yaml.safe_load(file.read_text())
    changed["clouds"]["elsewhere"] = {"auth": {"auth_url": "https://elsewhere"}}
    changed["clouds"]["climate"]["auth"]["password"] = "changed by its owner"
    file.write_text(yaml.safe_dump(changed))
    first_start(here.identity, replace(here.settings, port=9999), here.said.append)
    after = clouds(here)
    assert after["climate"]["auth"] == {
        **changed["clouds"]["climate"]["auth"],
        "auth_url": "http://127.0.0.1:9999/identity/v3",
    }
    assert after["elsewhere"] == changed["clouds"]["elsewhere"]
    assert mode(file) == 0o600


def test_a_broken_clouds_yaml_is_left_alone(here: Place) -> None:
    file = here.settings.home / "clouds.yaml"
    for broken in ("clouds: [", "[]", "clouds: 5", "\x00"):
        file.write_text(broken)
        first_start(here.identity, here.settings, here.said.append)
        assert file.read_text() == broken
        assert "cannot be read" in here.said[-1]


def test_a_new_password_replaces_the_one_in_clouds_yaml(here: Place) -> None:
    metadata.drop_all(here.identity.engine)
    metadata.create_all(here.identity.engine)
    (here.settings.home / "admin-password").unlink()
    before = clouds(here)
    first_start(here.identity, here.settings, here.said.append)
    assert clouds(here)["climate-demo"] == before["climate-demo"]
    assert clouds(here)["climate"] != before["climate"]
    assert here.password("admin") in str(clouds(here)["climate"])
    assert here.password("admin") in here.said[-1]


def test_a_new_database_under_an_old_home_gets_the_old_passwords(here: Place) -> None:
    before = clouds(here)
    metadata.drop_all(here.identity.engine)
    metadata.create_all(here.identity.engine)
    fresh = replace(here, identity=build(here.identity.engine, here.settings, QUICK))
    first_start(fresh.identity, here.settings, here.said.append)
    assert clouds(here) == before
    assert Asker(app_of(fresh)).sign_in("admin", here.password("admin")).status_code == 201
