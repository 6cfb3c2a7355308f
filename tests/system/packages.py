"""Installing a package of the tests beside the real ones: built as a wheel, unpacked as an installer would."""

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGES = Path(__file__).parents[1] / "packages"
BUILD = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1]))"


def install(name: str, target: Path) -> Path:
    """Put the package `name` with its metadata into `target`, a folder for PYTHONPATH."""
    wheels = target.with_name(f"{target.name}-wheels")
    wheels.mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-c", BUILD, str(wheels)], cwd=PACKAGES / name, check=True, capture_output=True, timeout=120
    )
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(target)
    return target
