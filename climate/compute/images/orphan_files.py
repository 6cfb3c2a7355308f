"""Orphaned files in the folder of images, left by workers and uploads that died; deleted periodically."""

from collections.abc import Iterable, Set
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from climate.compute.context import Compute
from climate.compute.models.image import KILLED
from climate.compute.servers import sync_states
from climate.compute.store.projects import images as rows
from climate.compute.store.servers import sync_states as sync_states_store
from climate.database.connections import reading

OLD_SECONDS = 86_400
"""Age in seconds after which an unchanged file is an orphan."""

log = structlog.get_logger(__name__)


def sweep(compute: Compute) -> None:
    """Delete old drafts, and contents that neither the registry nor a RESERVED server needs; fail old uploads.

    Files of another cloud are not touched.
    """
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        before = now - timedelta(seconds=OLD_SECONDS)
        old, recent = _by_age(_contents(compute.images), before)
        kept = rows.needed(conn, [path.name for path in old]) if old else set()
        abandoned = rows.saving(conn, before)
        cloud = sync_states_store.cloud(conn)
    left = [path for path in old if path.name not in kept]
    if not (left or abandoned) or cloud is None or not sync_states.is_ours(compute, cloud):
        return
    _delete(left)
    _give_up(compute, abandoned - {path.name.partition(".")[0] for path in recent}, now)


def _by_age(paths: Iterable[Path], before: datetime) -> tuple[list[Path], list[Path]]:
    """Return the files that were last written before a time, and the others."""
    old: list[Path] = []
    recent: list[Path] = []
    for path in paths:
        (old if _written_at(path) < before.timestamp() else recent).append(path)
    return old, recent


def _delete(orphans: Iterable[Path]) -> None:
    for path in orphans:
        path.unlink(missing_ok=True)
        log.info("orphaned image file deleted", file=path.name)


def _give_up(compute: Compute, image_ids: Set[str], now: datetime) -> None:
    """Record that the uploads of these images have failed: their processes died."""
    with compute.engine.begin() as conn:
        for image_id in image_ids:
            rows.settle(conn, image_id, KILLED, now)
            log.info("abandoned image upload failed", image=image_id)


def _contents(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _written_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return float("inf")
