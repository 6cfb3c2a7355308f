"""What died workers and uploads have left is swept away, and nothing that anybody may still want."""

import os
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from climate.compute.images import image_data, orphan_files
from climate.compute.migrations import cold_migration
from climate.compute.models.image import Image
from climate.compute.servers import actions
from climate.compute.servers.sync_states import MARK
from climate.compute.store.projects import images as rows
from climate.compute.store.servers import migration_lists
from tests.compute.cloud_factory import Place


def aged(path: Path, seconds: float) -> Path:
    path.touch()
    written = path.stat().st_mtime - seconds
    os.utime(path, (written, written))
    return path


def test_old_drafts_and_contents_of_no_image_go(here: Place) -> None:
    image_id = actions.snapshot(here.compute, here.boot_one().id, "copy")
    here.settle()
    kept = aged(image_data.content_file(here.compute, image_id), orphan_files.OLD_SECONDS + 60)
    draft = aged(kept.with_name(f"{image_id}.{uuid4().hex}.new"), orphan_files.OLD_SECONDS + 60)
    strange = aged(kept.with_name(str(uuid4())), orphan_files.OLD_SECONDS + 60)
    young = aged(kept.with_name(f"{image_id}.{uuid4().hex}.new"), orphan_files.OLD_SECONDS - 60)
    orphan_files.sweep(here.compute)
    assert (kept.exists(), draft.exists(), strange.exists(), young.exists()) == (True, False, False, True)


def test_the_disk_of_a_server_on_its_way_stays(here: Place) -> None:
    server = here.boot_one()
    cold_migration.migrate(here.compute, server.id)
    with here.compute.engine.connect() as conn:
        (migration,) = migration_lists.listed(conn, {"server_id": server.id}, 1)
    kept = aged(image_data.content_file(here.compute, migration.file), orphan_files.OLD_SECONDS + 60)
    orphan_files.sweep(here.compute)
    assert kept.exists()
    here.settle()
    assert not kept.exists()


def test_the_images_of_another_cloud_in_this_home_are_left_alone(here: Place) -> None:
    (here.compute.home / MARK).write_text("another\n", encoding="ascii")
    theirs = aged(image_data.content_file(here.compute, str(uuid4())), orphan_files.OLD_SECONDS + 60)
    orphan_files.sweep(here.compute)
    assert theirs.exists()


def test_an_upload_whose_process_died_is_given_up(here: Place) -> None:
    dead, slow, fresh = (str(uuid4()) for _ in range(3))
    with here.compute.engine.begin() as conn:
        for image_id in (dead, slow, fresh):
            rows.insert(conn, Image(image_id, "i", "demo", "saving", "private", "raw", "bare", None, None))
        now = here.compute.now(conn)
        for image_id in (dead, slow):
            rows.move(conn, image_id, "saving", "saving", now - timedelta(seconds=orphan_files.OLD_SECONDS + 60))
    image_data.content_file(here.compute, f"{slow}.{uuid4().hex}.new").touch()
    orphan_files.sweep(here.compute)
    assert here.count("compute_images", f"status = 'killed' AND id = '{dead}'") == 1
    assert here.count("compute_images", "status = 'saving'") == 2
