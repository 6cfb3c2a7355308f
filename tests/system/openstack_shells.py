"""The real `openstack` and `blazar` shells, many commands in one process: what each says, and its exit code.

Run as a program it reads commands from stdin, one JSON list of words a line,
and answers each with a line of JSON.  A process of its own for each command
would spend two seconds of computing on loading the same modules again.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import entry_points
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What it said in JSON; the shells put a sentence before it at times."""
        assert self.code == 0, self
        start = min((at for at in (self.out.find("{"), self.out.find("[")) if at >= 0), default=0)
        return json.loads(self.out[start:])


class Shells:
    """A process that carries out commands, as long as the block lasts."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.system.openstack_shells"],
            env=dict(environ),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> Said:
        """One command, `openstack …` or `blazar …`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"the shells ended over {words}"
        return Said(**json.loads(answer))

    def close(self) -> None:
        self._process.communicate(timeout=30)


def _program(name: str) -> Callable[[list[str]], int]:
    main: Callable[[list[str]], int] = next(iter(entry_points(group="console_scripts", name=name))).load()
    return main


def _carry_out(words: list[str]) -> dict[str, Any]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = _program(words[0])(words[1:])
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
    return {"code": code or 0, "out": out.getvalue(), "err": err.getvalue()}


def serve() -> None:
    """Answer until stdin ends."""
    answers = sys.stdout
    for line in sys.stdin:
        answers.write(json.dumps(_carry_out(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
