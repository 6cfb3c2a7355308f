"""What died workers and uploads have left is swept away, and nothing that anybody may still want."""

import os
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from climate.compute.images import image_data, orphan_files
from climate.compute.migrations import cold_migration
from climate.compute.models.image import Image
from climate.compute.models.server import SHELVED_OFFLOADED
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


def test_the_image_of_a_server_that_was_shelved_long_ago_keeps_its_content(here: Place) -> None:
    """The sweep runs between the link to the old content and the commit of the row that names it."""
    server = here.boot_one()
    actions.shelve(here.compute, server.id)
    here.settle()
    server = here.look(server.id)
    assert server.status == SHELVED_OFFLOADED
    aged(image_data.content_file(here.compute, server.shelved_image or ""), orphan_files.OLD_SECONDS + 60)
    with here.compute.engine.begin() as conn:
        made = image_data.of_shelved(conn, here.compute, server, "end", "lease-1")
        orphan_files.sweep(here.compute)
    assert image_data.content_file(here.compute, made.id).read_text(encoding="utf-8") == "s\n"


def test_a_content_that_is_imported_after_a_while_is_as_fresh_as_its_import(here: Place) -> None:
    image_id = str(uuid4())
    with here.compute.engine.begin() as conn:
        rows.insert(conn, Image(image_id, "i", "demo", "queued", "private", "raw", "bare", None, None))
    image_data.stage(here.compute, image_id, [b"words"])
    staged = here.compute.images / f"{image_id}.staged"
    aged(staged, orphan_files.OLD_SECONDS - 60)
    before = staged.stat().st_mtime
    image_data.import_staged(here.compute, image_id)
    assert image_data.content_file(here.compute, image_id).stat().st_mtime > before


def test_the_images_of_another_cloud_in_this_home_are_left_alone(here: Place) -> None:
    (here.compute.home / MARK).write_text("another\n", encoding="ascii")
    theirs = aged(image_data.content_file(here.compute, str(uuid4())), orphan_files.OLD_SECONDS + 60)
    orphan_files.sweep(here.compute)
    assert theirs.exists()


def test_a_folder_that_cannot_be_read_is_left_alone(here: Place) -> None:
    slow = str(uuid4())
    with here.compute.engine.begin() as conn:
        rows.insert(conn, Image(slow, "i", "demo", "saving", "private", "raw", "bare", None, None))
        before = here.compute.now(conn) - timedelta(seconds=orphan_files.OLD_SECONDS + 60)
        rows.move(conn, slow, "saving", "saving", before)
    here.compute.images.write_text("", encoding="ascii")
    orphan_files.sweep(here.compute)
    assert here.count("compute_images", "status = 'saving'") == 1, "nobody knows whether it goes on"


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
