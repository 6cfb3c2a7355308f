"""What workers and uploads that died have left in the folder of images: swept away by the service's round."""

from contextlib import suppress
from pathlib import Path

import structlog

from climate.compute import reconcile
from climate.compute.context import Compute
from climate.compute.store import findings
from climate.compute.store import images as rows
from climate.connections import reading

OLD_SECONDS = 86_400
"""Nobody works any more on what has not been written to for so long."""

log = structlog.get_logger(__name__)


def sweep(compute: Compute) -> None:
    """Delete old drafts, and contents that neither the registry nor a RESERVED server needs.

    Nothing of another cloud's is touched.
    """
    with reading(compute.engine) as conn:
        before = compute.now(conn).timestamp() - OLD_SECONDS
        old = [path for path in _contents(compute.images) if _written_at(path) < before]
        kept = rows.needed(conn, [path.name for path in old]) if old else set()
        cloud = findings.cloud(conn)
    left = [path for path in old if path.name not in kept]
    if not left or cloud is None or not reconcile.is_ours(compute, cloud):
        return
    for path in left:
        path.unlink(missing_ok=True)
        log.info("what was left of an image is gone", file=path.name)


def _contents(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _written_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return float("inf")
