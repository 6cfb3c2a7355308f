"""A file that an operator wrote and that cannot be read ends in a sentence that names it, never in a traceback."""

import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest
from cryptography.fernet import Fernet, InvalidToken
from structlog.testing import capture_logs

from climate.cli.connection.clouds import find
from climate.cli.errors import Failure
from climate.cloud.openstack.connection import connect
from climate.compute.errors import VirtError
from climate.compute.nodes import nodes_file
from climate.configuration import policy_file
from climate.embedded.errors import StoreError
from climate.embedded.postgres import _url
from climate.identity import clouds_yaml, initial_accounts, keys
from climate.runner import first_run
from climate.settings import SettingError, Settings

Read = Callable[[Path], object]


def _told_of_clouds(home: Path) -> None:
    said: list[str] = []
    clouds_yaml.write(home / "clouds.yaml", "http://h", {}, said.append)
    raise Failure(said[0])


FILES: Mapping[str, tuple[Read, type[Exception]]] = {
    "nodes.yaml": (nodes_file.read, VirtError),
    "keys/token-000001.key": (lambda home: keys.KeyRing(home / "keys").fernet(), SettingError),
    "keys/secret-000001.key": (lambda home: keys.check(home / "keys"), SettingError),
    "admin-password": (lambda home: initial_accounts.kept_password(home, "admin"), SettingError),
    "policy.yaml": (lambda home: policy_file.read(Settings(home=home, policy_file="policy.yaml")), SettingError),
    "clouds.yaml": (lambda home: find(None, {}, home), Failure),
    "./clouds.yaml": (_told_of_clouds, Failure),
    ".//clouds.yaml": (lambda home: connect("c", str(home / "clouds.yaml")), SettingError),
    "password": (lambda home: _url(home, home), StoreError),
}
"""File -> what reads it in a home, and the error that the command line tells in one sentence."""

CONTENTS = {
    "directory": None,
    "not UTF-8": b"\xff\xfe\x00",
    "no YAML": b"a: [1\nb: }",
    "no date": b"when: 2001-99-99",
    "nested": b"[" * 100_000,
    "a number": b"42",
    "a list of numbers": b"[1, 2]",
    "a text in a mapping": b"clouds: none",
}

TEXT = {"admin-password", "password"}
"""Files of one line, in which any text is right."""

ASKED = [
    (file, content)
    for file in FILES
    for content in CONTENTS
    if (content in ("directory", "not UTF-8") or file not in TEXT)
    # That one is only added to: what is a mapping is left to be one.
    and (file, content) != ("./clouds.yaml", "no date")
]


def sentence(home: Path, file: str) -> str:
    read, refusal = FILES[file]
    with pytest.raises(refusal) as refused:
        read(home)
    return str(refused.value)


@pytest.mark.parametrize(("file", "content"), ASKED)
def test_a_file_that_cannot_be_used_is_named_in_one_sentence(tmp_path: Path, file: str, content: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    written = CONTENTS[content]
    if written is None:
        path.mkdir()
    else:
        path.write_bytes(written)
    said = sentence(tmp_path, file)
    parsed = content in ("a number", "a list of numbers", "no date", "a text in a mapping")
    assert path.name in said or (file == "nodes.yaml" and parsed)
    assert "\n" not in said
    assert len(said) < 600


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("file", FILES)
def test_a_file_without_permission_is_named_in_one_sentence(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    path.chmod(0)
    assert path.name in sentence(tmp_path, file)


def test_the_place_of_a_mistake_is_reported(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("- name: a\n  vcpus: [1\n- name: b\n")
    assert "nodes.yaml cannot be read: line 3, column 7: " in sentence(tmp_path, "nodes.yaml")


def test_a_key_that_is_spoiled_while_climate_runs_leaves_the_known_ones(tmp_path: Path) -> None:
    ring = keys.KeyRing(tmp_path)
    known = ring.fernet()
    sealed = known.encrypt(b"x")
    (tmp_path / "token-000002.key").write_bytes(b"spoiled")
    assert ring.fernet(look_now=True).decrypt(sealed) == b"x"


def test_files_that_are_no_keys_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "token-old.key").write_bytes(b"spoiled")
    keys.check(tmp_path)
    keys.KeyRing(tmp_path).rotate()
    assert (tmp_path / "token-000001.key").exists()


def test_a_folder_of_keys_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a file")
    with pytest.raises(SettingError, match=r"cannot write a key in .*keys: File exists; CLIMATE_HOME has to be"):
        keys.KeyRing(tmp_path / "keys").fernet()


def test_a_spoiled_key_keeps_no_other_key_from_coming_or_going(tmp_path: Path) -> None:
    moments = count(0.0, 2.0)
    ring = keys.KeyRing(tmp_path, lambda: next(moments))  # each call looks again
    compromised = ring.fernet().encrypt(b"x")
    (tmp_path / "token-000003.key").write_bytes(b"spoiled")
    (tmp_path / "token-000002.key").write_bytes(Fernet.generate_key())
    (tmp_path / "token-000001.key").unlink()
    with capture_logs() as said:
        for _ in range(3):
            with pytest.raises(InvalidToken):
                ring.fernet().decrypt(compromised)
    assert [one["event"] for one in said] == ["a key is not used"]
    assert "token-000003.key" in said[0]["reason"]
    assert Fernet((tmp_path / "token-000002.key").read_bytes()).decrypt(ring.fernet().encrypt(b"y")) == b"y"
    (tmp_path / "token-000003.key").write_bytes(Fernet.generate_key())
    assert Fernet((tmp_path / "token-000003.key").read_bytes()).decrypt(ring.fernet().encrypt(b"z")) == b"z"


def test_where_no_key_is_left_that_can_be_used_the_old_ones_open_nothing(tmp_path: Path) -> None:
    ring = keys.KeyRing(tmp_path)
    ring.fernet()
    (tmp_path / "token-000002.key").write_bytes(b"spoiled")
    (tmp_path / "token-000001.key").unlink()
    with pytest.raises(SettingError, match=r"token-000002\.key cannot be used"):
        ring.fernet(look_now=True)


def test_the_first_start_tells_of_a_file_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "keys" / "token-000001.key").mkdir(parents=True)
    environ = {"CLIMATE_HOME": str(tmp_path), "CLIMATE_DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    assert first_run.main([], environ) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "token-000001.key" in said
    assert said.count("\n") == 1
