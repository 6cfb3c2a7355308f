"""Orphaned files in the folder of images, left by workers and uploads that died; deleted periodically."""

from collections.abc import Iterable, Set
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.images import image_data
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

    Files of another cloud are not touched. Nothing happens while the folder cannot be read.
    """
    try:
        _sweep(compute)
    except OSError as error:
        log.error("folder of images not swept", folder=str(compute.images), reason=str(error))


def _sweep(compute: Compute) -> None:
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
    _delete(_by_age(left, before)[0])
    _record_failures(compute, abandoned - {path.name.partition(".")[0] for path in recent}, now)


def _by_age(paths: Iterable[Path], before: datetime) -> tuple[list[Path], list[Path]]:
    """Return the files that were last written before a time, and the others."""
    old: list[Path] = []
    recent: list[Path] = []
    for path in paths:
        (old if _written_at(path) < before.timestamp() else recent).append(path)
    return old, recent


def _delete(orphans: Iterable[Path]) -> None:
    one_by_one.each("deletion of image files", orphans, _delete_one, lambda path: path.name)


def _delete_one(path: Path) -> None:
    if image_data.discard(path):
        log.info("orphaned image file deleted", file=path.name)


def _record_failures(compute: Compute, image_ids: Set[str], now: datetime) -> None:
    """Record that the uploads of these images have failed: their processes died."""

    def record(image_id: str) -> None:
        with compute.engine.begin() as conn:
            rows.settle(conn, image_id, KILLED, now)
        log.info("abandoned image upload failed", image=image_id)

    one_by_one.each("failure of image uploads", sorted(image_ids), record)


def _contents(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except FileNotFoundError:
        return []


def _written_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return float("inf")
