"""Copies the scripts of others out of `npm ci` into the static files, with their licences and checksums.

Run by `make vendor`, which only developers need: the copies are part of the repository.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "api" / "web" / "static" / "vendor"
LOCK = "vendor.lock"
FILES: Mapping[str, Sequence[str]] = {"htmx.org": ("dist/htmx.min.js", "dist/ext/hx-sse.min.js", "LICENSE")}
"""Package -> the files of it that pages use."""


def main() -> None:
    """Replace the copies by those of the locked versions."""
    with TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=folder, check=True)
        shutil.rmtree(TARGET, ignore_errors=True)
        for package, files in FILES.items():
            source = Path(folder, "node_modules", package)
            version = json.loads((source / "package.json").read_text(encoding="utf-8"))["version"]
            target = TARGET / f"{package.removesuffix('.org')}-{version}"
            target.mkdir(parents=True)
            for name in files:
                shutil.copy(source / name, target)
    (TARGET / LOCK).write_text(sums(TARGET), encoding="utf-8")


def sums(folder: Path) -> str:
    """Return the SHA-256 of each file below a folder, in the form of sha256sum."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)


if __name__ == "__main__":
    main()
