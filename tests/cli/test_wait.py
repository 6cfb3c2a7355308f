"""Progress of a wait on a terminal."""

import io
import time

from rich.console import Console

from climate.cli.wait import Progress


def rendered(progress: Progress) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(progress)
    return out.getvalue()


def test_each_rendering_counts_on_between_two_looks() -> None:
    progress = Progress("server one", time.monotonic() - 5)
    assert rendered(progress).startswith("server one (5 s)")
    progress.state, progress.began = "BUILD", time.monotonic() - 61
    assert rendered(progress).startswith("server one: BUILD (61 s)")
