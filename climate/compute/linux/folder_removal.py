"""Removal of folders that a guest has filled: however deep they are nested, and whatever permissions they have."""

import shutil
import subprocess
from pathlib import Path


def remove(folder: Path) -> None:
    """Delete a folder with all that it holds; one that is not there is no error. Raise OSError."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (PermissionError, RecursionError):
        _remove_by_programs(folder)


def _remove_by_programs(folder: Path) -> None:
    # rmtree calls itself for each level, so a thousand levels stop it; the programs of coreutils know no such limit.
    _run("chmod", "-R", "u+rwX", "--", folder)
    ran = _run("rm", "-rf", "--one-file-system", "--", folder)
    if ran.returncode:
        raise OSError(f"{folder.name} cannot be deleted: {ran.stderr.strip()[-500:]}")


def _run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
