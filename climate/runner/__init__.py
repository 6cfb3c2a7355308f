"""Runner behind `climate up`: the processes of the Procfile and the stores that they need."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from climate.runner.stack import ProcessSelection
from climate.runner.stack import up as _up
from climate.settings import Settings

__all__ = ["procfile_of", "up"]


def up(
    settings: Settings,
    environ: Mapping[str, str],
    only: Sequence[str] | None = None,
    formation: Mapping[str, int] | None = None,
    demo: bool = False,
) -> int:
    """Run climate until a signal stops it; return the exit status, and print the progress on stdout.

    `only` names processes of the Procfile (None: all), `formation` the number of each, `demo` fills an empty
    cloud.  Children get their settings as CLIMATE_* variables, added to `environ`.
    """
    first = (sys.executable, "-m", "climate.runner.first_run", *(["--demo"] if demo else []))
    procfile = procfile_of(Path(__file__).parents[1]).read_text(encoding="utf-8")
    order = ProcessSelection(procfile, tuple(only or ()), formation or {}, first)
    return _up(settings, environ, order, sys.stdout)


def procfile_of(package: Path) -> Path:
    """Return the Procfile of an installed package, or the one beside the package in the repository."""
    packaged = package / "Procfile"
    return packaged if packaged.is_file() else package.parent / "Procfile"
