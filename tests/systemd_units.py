"""Systemd units of deploy/systemd, read for tests."""

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNITS = ROOT / "deploy" / "systemd"
PREFIX = "/opt/climate"
ANALYZE = shutil.which("systemd-analyze")

Sections = dict[str, dict[str, list[str]]]


def read(text: str) -> Sections:
    """Return the values of each key of each section, in their order."""
    sections: Sections = {}
    keys: dict[str, list[str]] = {}
    for line in text.splitlines():
        if head := re.fullmatch(r"\[(\w+)]", line):
            keys = sections.setdefault(head[1], {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            keys.setdefault(key, []).append(value)
    return sections


def install(folder: Path) -> list[Path]:
    """Copy the units to `folder` as they would be after an install below it; return their paths without drop-ins."""
    prefix = folder / "opt"
    (prefix / "bin").mkdir(parents=True)
    for program in ("climate", "python"):
        (prefix / "bin" / program).symlink_to("/bin/true")
    shutil.copytree(UNITS, folder / "units")
    for path in (folder / "units").rglob("*.service"):
        path.write_text(path.read_text(encoding="utf-8").replace(PREFIX, str(prefix)), encoding="utf-8")
    return [path for path in (folder / "units").iterdir() if path.is_file()]


def verify(units: list[Path]) -> str:
    """Return what systemd-analyze complains about."""
    assert ANALYZE is not None
    command = [ANALYZE, "verify", "--man=no", *map(str, units)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ran.stdout + ran.stderr + ("" if ran.returncode == 0 else f"exit status {ran.returncode}")
