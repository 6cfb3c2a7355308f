"""docs/install.md names files, units, commands and settings that exist."""

import re
import shlex
from pathlib import Path

import pytest

from tests.doc_pages import ROOT, blocks, broken_links, check_command, text_of, unknown_settings
from tests.systemd_units import ANALYZE, UNITS, install, read, verify
from tests.test_distribution import PROJECT

PAGE = text_of("install")
LINES = [line for block in blocks(PAGE) for line in block.replace("\\\n", "").splitlines()]
DROP_INS = re.findall(r"`([\w.-]+\.service\.d/\w+\.conf)`[^`]*```ini\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = sorted({*re.findall(r"`(climate [^`.]+)`", PAGE), *(one for one in LINES if one.startswith("climate "))})


def test_settings_and_links_exist() -> None:
    assert unknown_settings(PAGE) == set()
    assert broken_links(re.sub(r"#[\w-]+\)", ")", PAGE).replace("]()", "](install.md)")) == set()


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_is_understood(line: str) -> None:
    check_command(line)


def test_make_targets_and_files_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {line.split()[1] for line in LINES if line.startswith("make ")} <= {*targets}
    built = [shlex.split(line, comments=True) for line in LINES if line.startswith("podman build")]
    assert len(built) == 2
    for words in built:
        assert (ROOT / words[words.index("-f") + 1]).is_file()
        assert (ROOT / words[-1]).is_dir()


def test_no_migration_can_be_reversed_as_it_says() -> None:
    assert "none has a downgrade" in PAGE
    versions = [*(ROOT / "migrations" / "versions").glob("*.py")]
    assert len(versions) > 30
    assert [path.name for path in versions if "def downgrade" in path.read_text(encoding="utf-8")] == []


def test_it_installs_the_present_version_of_the_distribution() -> None:
    assert {*re.findall(r"/opt/climate-(\d[\d.]*\d)", PAGE)} == {PROJECT["version"]}
    (wheel,) = {*re.findall(r"dist/([\w.-]+\.whl)", PAGE)}
    assert wheel == f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"


def test_each_unit_is_listed_with_its_command() -> None:
    rows = dict(re.findall(r"^\| `(climate[-.]\w+)` \|(?: `([^`]*)`)?", PAGE, re.MULTILINE))
    assert rows.pop("climate.target") == ""
    for path in UNITS.glob("*.service"):
        command = read(path.read_text(encoding="utf-8"))["Service"]["ExecStart"][0]
        assert rows.pop(path.stem) == command.removeprefix("/opt/climate/bin/")
    assert rows == {}


def test_drop_ins_are_shown_for_units_that_exist() -> None:
    assert len(DROP_INS) == len(blocks(PAGE, "ini"))
    stems = {path.stem for path in UNITS.glob("*.service")} | {"climate-"}
    assert {name.partition(".service.d/")[0] for name, _ in DROP_INS} <= stems


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_understands_each_drop_in(tmp_path: Path) -> None:
    units = install(tmp_path)
    for name, text in DROP_INS:
        path = tmp_path / "units" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert verify(units) == ""
    path.write_text(text.replace("ExecStart", "ExecBegin"), encoding="utf-8")
    assert "ExecBegin" in verify(units), "the drop-ins are read"
