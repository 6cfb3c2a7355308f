"""Settings of zones: what is refused at the start, and what the options are made of."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from climate import bootstrap
from climate.compute.errors import ComputeError
from climate.configuration import zones
from climate.identity.keys import KEPT, KeyRing
from climate.sealed_secrets import Vault
from climate.settings import SettingError, Settings

NOWHERE = create_engine("postgresql+psycopg://nowhere")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("zone_name", "a!b"),
        ("zone_name", ""),
        ("zone_name", " x"),
        ("zone_name", "x" * 300),
        ("zone_name", "a@b"),
        ("zone_capabilities", "hypervisor"),
        ("zone_capabilities", "a=b, a=c"),
    ],
)
def test_unusable_settings_stop_the_start_with_a_text(setting: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{setting.upper()}"):
        bootstrap.check(Settings(home=tmp_path, **{setting: value}))


def test_defaults_can_be_used(tmp_path: Path) -> None:
    bootstrap.check(Settings(home=tmp_path))
    options = zones.options(Settings(), NOWHERE, Vault.of_this_process())
    assert (options.name, options.capabilities["os"]) == ("nova", "linux")
    assert options.routing
    assert options.admin_api


def test_password_is_sealed_and_opened_by_the_vault() -> None:
    vault = Vault.of_this_process()
    options = zones.options(Settings(), NOWHERE, vault)
    sealed = options.seal("correct horse")
    assert "horse" not in sealed
    assert options.unseal(sealed) == "correct horse"
    with pytest.raises(ComputeError, match="set it again"):
        zones.options(Settings(), NOWHERE, Vault.of_this_process()).unseal(sealed)


def test_password_is_forgotten_with_its_key(tmp_path: Path) -> None:
    seconds = [0.0]
    keys = KeyRing(tmp_path, lambda: seconds[0], "secret")
    options = zones.options(Settings(), NOWHERE, Vault(keys.fernet))
    sealed = options.seal("correct horse")
    for _ in range(KEPT):
        assert options.unseal(sealed) == options.unseal(sealed) == "correct horse"
        keys.rotate()
    with pytest.raises(ComputeError, match="set it again"):
        options.unseal(sealed)
    assert options.unseal(options.seal("another")) == "another"


def test_passwords_that_are_remembered_are_limited() -> None:
    options = zones.options(Settings(), NOWHERE, Vault.of_this_process())
    for number in range(zones.MOST_PASSWORDS + 2):
        assert options.unseal(options.seal(str(number))) == str(number)
    assert len(options.unseal.known) <= zones.MOST_PASSWORDS  # type: ignore[attr-defined]
