"""The runner behind `climate up`: the processes of the Procfile and the stores that they need."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from climate.runner.stack import Order
from climate.runner.stack import up as _up
from climate.settings import Settings

__all__ = ["up"]


def up(
    settings: Settings,
    environ: Mapping[str, str],
    only: Sequence[str] | None = None,
    formation: Mapping[str, int] | None = None,
    demo: bool = False,
) -> int:
    """Run climate until it is asked to stop; the answer is the exit status, and what happens is on stdout.

    `only` names processes of the Procfile (None: all), `formation` says how many of each, `demo` fills an empty
    cloud.  Children find their settings as CLIMATE_* in their environment, on top of `environ`.
    """
    first = (sys.executable, "-m", "climate.runner.first_run", *(["--demo"] if demo else []))
    order = Order(_procfile().read_text(encoding="utf-8"), tuple(only or ()), formation or {}, first)
    return _up(settings, environ, order, sys.stdout)


def _procfile() -> Path:
    """The Procfile at the root of the tree; in an installed package it lies inside the package."""
    package = Path(__file__).parents[1]
    places = (package.parent / "Procfile", package / "Procfile")
    return next((path for path in places if path.is_file()), places[0])
