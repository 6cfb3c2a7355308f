"""The wheel, built out of the sdist, has every file that runs, and nothing else."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from climate import runner
from tests.distribution import ROOT, build_sdist, build_wheel, runtime_files

SHARE = ".data/data/share/climate/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    return zipfile.ZipFile(build_wheel(folder, build_sdist(folder)))


def names(wheel: zipfile.ZipFile) -> Sequence[str]:
    return [name for name in wheel.namelist() if not name.endswith("/")]


def test_packages_are_those_of_the_repository(wheel: zipfile.ZipFile) -> None:
    packaged = {name for name in names(wheel) if not name.startswith("climate_reservation-")}
    assert packaged - {"climate/Procfile"} == runtime_files()


def test_packages_have_more_than_modules() -> None:
    assert {Path(name).suffix for name in runtime_files()} == {
        ".py",
        ".sql",
        ".mako",
        ".html",
        ".css",
        ".js",
        ".svg",
        ".lock",
        "",
    }


def test_procfile_is_the_one_of_the_repository_which_the_runner_reads(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    assert wheel.read("climate/Procfile") == (ROOT / "Procfile").read_bytes()
    wheel.extractall(tmp_path)
    assert runner.procfile_of(tmp_path / "climate") == tmp_path / "climate" / "Procfile"
    assert runner.procfile_of(ROOT / "climate") == ROOT / "Procfile"


def test_licence_and_files_for_operators_are_in_it(wheel: zipfile.ZipFile) -> None:
    (licence,) = (name for name in names(wheel) if name.endswith(".dist-info/licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    shared = {name.partition(SHARE)[2]: name for name in names(wheel) if SHARE in name}
    assert wheel.read(shared.pop("requirements.lock")) == (ROOT / "requirements.lock").read_bytes()
    deploy = ROOT / "deploy"
    written = {str(path.relative_to(deploy)) for path in deploy.rglob("*") if path.is_file() and path.parent != deploy}
    written |= {"Containerfile", "Containerfile.base"}
    assert {name for name in written if "__pycache__" not in name} == {*shared}
