"""Benchmarks of another commit and of this one by turns, and the ratios of their figures with their spread.

`make bench-compare REF=main~5 ARGS="http race"`: a ratio above 1 says that
this commit prints a larger number than the other.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, head, parse

ROOT = Path(__file__).parent.parent
Key = tuple[str, str]
"""Title of a table, and name of a figure in it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("ref", help="the other commit")
    parser.add_argument("names", nargs="*", default=["create", "http", "race"], help="benchmarks, as files are named")
    parser.add_argument("--rounds", type=int, default=3, help="how often each of both is measured (3)")
    given = parser.parse_args()
    with other_tree(given.ref) as tree:
        runs: dict[Path, list[dict[Key, Figure]]] = {tree: [], ROOT: []}
        for number in range(given.rounds):
            for place in (tree, ROOT) if number % 2 == 0 else (ROOT, tree):
                print(f"round {number + 1} of {given.rounds}: {'this' if place == ROOT else given.ref}", flush=True)
                runs[place].append(measure(place, given.names))
        show(given.ref, runs[tree], runs[ROOT])


@contextmanager
def other_tree(ref: str) -> Iterator[Path]:
    """Check a commit out beside this one while the block lasts."""
    with tempfile.TemporaryDirectory(prefix="climate-compare-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), ref)
        try:
            describe(tree)
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def describe(tree: Path) -> None:
    """Write the entry points of a tree as those of the installed distribution, which PYTHONPATH puts first."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("entry-points", {})
    folder = tree / f"{own['name'].replace('-', '_')}-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {own['name']}\nVersion: 0\n", encoding="utf-8")
    entries = ConfigParser(delimiters=("=",))
    entries.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    entries.read_dict(groups)
    with (folder / "entry_points.txt").open("w", encoding="utf-8") as file:
        entries.write(file)


def measure(tree: Path, names: Sequence[str]) -> dict[Key, Figure]:
    """Run benchmarks of a tree, in short, with the packages of this environment; return what they print."""
    found: dict[Key, Figure] = {}
    for name in names:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--short"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found |= {(figure.table, figure.name): figure for figure in parse(done.stdout)}
    return found


def show(ref: str, before: Sequence[dict[Key, Figure]], after: Sequence[dict[Key, Figure]]) -> None:
    """Print each figure that both have: its medians, and the ratio of both, round by round."""
    title = None
    for key, figure in after[0].items():
        pairs = [(one.get(key), two.get(key)) for one, two in zip(before, after, strict=True)]
        values = [(one.value, two.value) for one, two in pairs if one and two and one.value and two.value]
        if not values:
            continue
        if title != key[0]:
            title = key[0]
            head(f"{title}: {ref}, this, and their ratio")
        ratios = [two / one for one, two in values]
        medians = [f"{median(side):,.2f} {figure.unit}".strip() for side in zip(*values, strict=True)]
        print(
            f"  {key[1]:<58} {medians[0]:>14} {medians[1]:>14}   {median(ratios):.2f} "
            f"[{min(ratios):.2f}-{max(ratios):.2f}]",
            flush=True,
        )


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
