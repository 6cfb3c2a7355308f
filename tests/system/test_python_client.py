"""The example of docs/python.md on a whole stack."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.stack import Stack

PAGE = Path(__file__).parents[2] / "docs" / "python.md"

pytestmark = pytest.mark.slow


def test_the_example_runs_as_it_stands(stack: Stack) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    environ = {
        "OS_CLIENT_CONFIG_FILE": str(stack.home / "clouds.yaml"),
        "HOME": str(stack.home),
        "PATH": "/usr/bin:/bin",
    }
    ran = subprocess.run(
        [sys.executable, "-c", example], env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].endswith("[2]")
    assert any(line.startswith("node-1 ACTIVE ['10.") for line in lines)
    assert "hosts" in lines[-1]
