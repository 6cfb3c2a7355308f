"""Build hook of hatchling: files of the repository's root and of deploy/ that an installed climate needs."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGED = {"Procfile": "climate/Procfile"}
"""Files that the package reads at run time, with their paths in the wheel."""
SHARED = {
    "requirements.lock": "share/climate/requirements.lock",
    "deploy/nova-filter": "share/climate/nova-filter",
    "deploy/systemd": "share/climate/systemd",
    "deploy/Containerfile": "share/climate/Containerfile",
    "deploy/Containerfile.base": "share/climate/Containerfile.base",
}
"""Files for operators, with their paths below the environment."""


class BuildHook(BuildHookInterface):
    """Adds files to the wheel; an editable install reads them in the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless the build is editable."""
        if version != "editable":
            build_data["force_include"] |= _absolute(self.root, PACKAGED)
            build_data["shared_data"] |= _absolute(self.root, SHARED)


def _absolute(root: str, files: dict[str, str]) -> dict[str, str]:
    return {str(Path(root, source)): target for source, target in files.items()}
