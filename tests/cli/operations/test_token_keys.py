"""Keys that seal tokens are rotated from the command line."""

from pathlib import Path

from climate.identity.keys import KeyRing
from tests.cli.conftest import Cli


def test_tokens_sealed_before_stay_good(cli: Cli, tmp_path: Path) -> None:
    before = KeyRing(tmp_path / "keys").fernet().encrypt(b"token")
    assert cli("keys", "rotate").code == 0
    after = KeyRing(tmp_path / "keys").fernet()
    assert after.decrypt(before) == b"token"
    assert len(list((tmp_path / "keys").glob("token-*.key"))) == 2
