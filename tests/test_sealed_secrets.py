"""Secrets that are kept: sealed, opened after tokens have got other keys, and told by nobody."""

from pathlib import Path

import pytest

from climate.identity.keys import KeyRing
from climate.sealed_secrets import Unreadable, Vault

SECRETS = {"password": "correct horse", "pin": 1234}


def test_what_is_sealed_can_be_opened_by_all_who_have_the_keys(tmp_path: Path) -> None:
    vault = Vault(KeyRing(tmp_path, name="secret").fernet)
    sealed = vault.seal(SECRETS)
    assert "correct" not in sealed
    assert vault.seal(SECRETS) != sealed
    assert Vault(KeyRing(tmp_path, name="secret").fernet).open(sealed) == SECRETS
    assert "correct" not in repr(vault)


def test_keys_of_tokens_that_rotate_take_no_secret_along(tmp_path: Path) -> None:
    sealed = Vault(KeyRing(tmp_path, name="secret").fernet).seal(SECRETS)
    tokens = KeyRing(tmp_path)
    for _ in range(5):
        tokens.rotate()
    assert Vault(KeyRing(tmp_path, name="secret").fernet).open(sealed) == SECRETS
    with pytest.raises(Unreadable):
        Vault(tokens.fernet).open(sealed)


@pytest.mark.parametrize("sealed", ["", "gAAAAA", "nonsense", "ü"])
def test_what_was_never_sealed_is_unreadable(sealed: str) -> None:
    with pytest.raises(Unreadable):
        Vault.of_this_process().open(sealed)
