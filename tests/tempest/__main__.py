"""Command of `make test-tempest`: runs suites against a deployment of its own and compares the failures with the list.

`python -m tests.tempest [SUITE...] [--test REGEX] [--keep FOLDER] [--concurrency N]`
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from climate.sandbox.entry_command import within
from tests.tempest import configuration, deployment, expected, guest, lab, results, suites
from tests.tempest.results import Outcome
from tests.tempest.suites import Suite

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv-tempest" / "bin"


@dataclass(frozen=True)
class Runner:
    """Runs tests in a folder that has a configuration of Tempest."""

    folder: Path
    url: str
    bin: Path = BIN

    def prepare(self, options: configuration.Sections) -> None:
        """Write the configuration of Tempest and of stestr."""
        packages = Path(self._read("-c", "import tempest, pathlib; print(pathlib.Path(tempest.__file__).parents[1])"))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "tempest.conf").write_text(configuration.text(options), encoding="utf-8")
        where = f"test_path={packages}/tempest/test_discover\ntop_dir={packages}"
        # Tests of one class run in one process.
        lines = f"[DEFAULT]\n{where}\ngroup_regex=([^\\.]*\\.)*\n"
        (self.folder / ".stestr.conf").write_text(lines, encoding="utf-8")

    def _read(self, *words: str) -> str:
        made = subprocess.run([self.bin / "python", *words], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of the tests.

        The API tests of Blazar's plugin have port 80 of this machine in their code; the proxy leads it to climate.
        Tempest itself does not read that variable.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLIMATE_", "OS_"))}
        kept = {name: value for name, value in kept.items() if name.lower() not in ("http_proxy", "no_proxy")}
        return {**kept, "TEMPEST_CONFIG_DIR": str(self.folder), "http_proxy": self.url}

    def run(self, suite: Suite, only: str, concurrency: int) -> list[Outcome]:
        """Run the tests of a suite whose path `only` matches, and return their outcomes."""
        count = 1 if suite.is_serial else concurrency
        words = ["run", "--concurrency", str(count), f"^(?=.*(?:{only}))({suite.regex})"]
        subprocess.run([self.bin / "stestr", *words], cwd=self.folder, env=self.environ, check=False)
        return self._outcomes()

    def _outcomes(self) -> list[Outcome]:
        last = [self.bin / "stestr", "last", "--subunit"]
        stream = subprocess.run(last, cwd=self.folder, stdout=subprocess.PIPE, check=False).stdout
        reader = [self.bin / "python", Path(__file__).with_name("stream_reader.py")]
        lines = subprocess.run(reader, input=stream, stdout=subprocess.PIPE, check=True).stdout
        return results.read(lines.decode().splitlines())


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tempest", description="Run Tempest against climate.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"suites to run: {', '.join(suites.SUITES)}")
    parser.add_argument("--test", default="", help="regular expression of the tests to run; nothing is compared then")
    parser.add_argument("--keep", type=Path, help="folder that keeps the home of the deployment and the logs")
    parser.add_argument("--concurrency", type=int, default=2, help="test processes of suites that allow several")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, folder: Path) -> int:
    """Run the suites below `folder`; print their figures, and return 1 for a difference from the list."""
    chosen = suites.chosen(options.suites)
    outcomes: list[Outcome] = []
    for place in (deployment, lab):
        own = [suite for suite in chosen.values() if suite.needs_networks == (place is lab)]
        outcomes += _run_in(place, own, options, folder / place.__name__.rpartition(".")[2]) if own else []
    print(results.table(chosen, outcomes))
    if options.test:
        print("\n".join(f"{test}\n    {reason}" for test, reason in results.failed(outcomes).items()))
        return int(bool(results.failed(outcomes)))
    known = expected.read(expected.FILE.read_text(encoding="utf-8"))
    difference = expected.compare(known, outcomes, tuple(chosen))
    print(difference)
    return int(bool(difference))


def _run_in(place: ModuleType, own: Sequence[Suite], options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Run suites in a deployment of a kind, and return their outcomes."""
    with place.running(folder / "home") as stack:
        runner = Runner(folder / "tempest", stack.url)
        runner.prepare(configuration.sections(place.cloud(stack), folder / "tempest"))
        return [one for suite in own for one in runner.run(suite, options.test, options.concurrency)]


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = parsed(arguments)
    wanted = suites.chosen(options.suites)
    if any(suite.needs_networks for suite in wanted.values()) and not within():
        reason = lab.lacks(os.environ)
        if reason is None:
            guest.ensure()
            lab.enter("tests.tempest", arguments, os.environ)
        options.suites = [name for name, suite in wanted.items() if not suite.needs_networks]
        print(f"left out: {', '.join(sorted(wanted.keys() - set(options.suites)))}: {reason}")
        if not options.suites:
            return 0
    if options.keep:
        return run(options, options.keep.resolve())
    with TemporaryDirectory(prefix="climate-tempest-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
