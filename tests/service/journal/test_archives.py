"""Leases that went long ago move to files, from which they answer; nothing is lost wherever a run is killed."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError

from benchmarks import seed
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Busy, Conflict, InvalidInput, NotFound, Unavailable
from climate.domain.facts import LeaseRenamed
from climate.domain.lease import Lease
from climate.service.journal import archives, consistency_check, rebuild
from climate.service.journal.archives import Outcome, Sizes
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.store.journal import archives as stored
from climate.store.leases import leases as rows_of
from climate.store.tables import metadata
from tests.campaign import cases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import get, make, rows, run_due

YEAR = timedelta(days=365)
FACTS = text("""
    SELECT stream::text, version FROM journal
    WHERE stream IN (SELECT stream FROM journal WHERE kind = 'LeaseCreated')
""")
SMALL = Sizes(file=6, block=2, deleted=2)
OLD = 14
"""Leases that went long ago."""
STEPS = {"begun": 3, "a block written": 7, "written": 3, "known": 3, "rows deleted": 7, "done": 3}
"""Of a run: how often each is made for two files of six leases and one of two."""


class Killed(BaseException):
    """Nothing is tidied up behind it, as behind a process that is killed."""


@dataclass
class Scene:
    """Leases of long ago, one that went yesterday, and one that runs."""

    climate: Climate
    old: Lease
    recent: Lease
    running: Lease

    def archive(self, step: Callable[[str], None] = lambda done: None) -> Outcome:
        return archives.archive(self.climate, YEAR, sizes=SMALL, step=step)

    @property
    def folder(self) -> Path:
        return archives.folder(self.climate.settings)

    def facts(self) -> Counter[tuple[str, int]]:
        """How often each fact of a lease is in the journal or in an archive that the database knows."""
        with reading(self.climate.engine) as conn:
            known = conn.execute(FACTS)
            found = Counter((row[0], row[1]) for row in known)
            names = [one.name for one in stored.complete(conn)]
        for name in names:
            for line in gzip.decompress((self.folder / name).read_bytes()).decode().splitlines()[1:]:
                lease = json.loads(line)
                found.update((lease["lease_id"], fact["version"]) for fact in lease["facts"])
        return found


@pytest.fixture
def scene(climate: Climate, clock: Clock, engine: Engine, tmp_path: Path) -> Scene:
    climate = replace(climate, settings=replace(climate.settings, archive_dir=str(tmp_path / "archives")))
    old = make(climate, clock, start=0)
    run_due(climate)
    clock.forward(minutes=10)
    leases.delete(climate, MEMBER, old.id)
    run_due(climate)
    seed.copy(engine, [old.id], OLD - 1)
    clock.forward(days=400)
    recent = make(climate, clock, start=0)
    leases.delete(climate, MEMBER, recent.id)
    run_due(climate)
    clock.forward(days=1)
    running = make(climate, clock, start=0, hours=48)
    run_due(climate)
    return Scene(climate, old, recent, running)


def test_leases_of_long_ago_move_to_files_and_others_stay(scene: Scene, engine: Engine) -> None:
    before = scene.facts()
    outcome = scene.archive()
    assert (outcome.leases, outcome.files, outcome.kept) == (OLD, 3, 0)
    assert scene.facts() == before
    with reading(engine) as conn:
        left = set(conn.scalars(text("SELECT id FROM leases")))
    assert left == {scene.recent.id, scene.running.id}
    assert get(scene.climate, scene.running).status == "ACTIVE"
    assert scene.archive().files == 0


def test_no_row_of_them_is_left(scene: Scene, engine: Engine) -> None:
    scene.archive()
    with reading(engine) as conn:
        for table, owner in (("reservations", "lease_id"), ("events", "lease_id"), ("journal", "stream")):
            count = text(f"SELECT count(*) FROM {table} WHERE {owner} = :id")
            assert conn.scalar(count, {"id": scene.old.id}) == 0
        assert conn.scalar(text("SELECT count(*) FROM allocations WHERE kind = 'lease'")) == 2
        unowned = text("SELECT count(*) FROM actions WHERE event_id NOT IN (SELECT id FROM events)")
        assert conn.scalar(unowned) == 0


def test_history_and_looks_back_answer_from_the_file(scene: Scene) -> None:
    climate, lease = scene.climate, scene.old
    told = leases.history(climate, MEMBER, lease.id)
    at = told[1].fact.at
    then = leases.get(climate, MEMBER, lease.id, at)
    scene.archive()
    assert leases.history(climate, MEMBER, lease.id) == told
    assert leases.get(climate, MEMBER, lease.id, at) == then
    assert consistency_check.lease_history(climate, lease.id)[1] == told
    for refused in (
        lambda: leases.history(climate, STRANGER, lease.id),
        lambda: leases.get(climate, MEMBER, lease.id),
        lambda: leases.get(climate, MEMBER, lease.id, at - timedelta(days=1)),
    ):
        with pytest.raises(NotFound):
            refused()


def test_the_files_are_read_without_climate(scene: Scene) -> None:
    scene.archive()
    for path in scene.folder.glob("*.jsonl.gz"):
        digest, name = path.with_name(path.name + ".sha256").read_text().split()
        assert (digest, name) == (hashlib.sha256(path.read_bytes()).hexdigest(), path.name)
        head, *lines = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
        assert (head["format"], head["version"]) == ("climate-archive", 1)
        assert all(line["facts"][0]["kind"] == "LeaseCreated" for line in lines)
        assert all([fact["version"] for fact in line["facts"]] == [1, 2, 3, 4, 5, 6, 7] for line in lines)


def test_check_and_rebuild_know_of_archives(scene: Scene, engine: Engine) -> None:
    scene.archive()
    assert consistency_check.differences(scene.climate) == []
    before = rows(engine)
    assert rebuild.rebuild(scene.climate).left == ()
    assert [rows(engine)[name] for name in ("journal", "leases", "events")] == [
        before[name] for name in ("journal", "leases", "events")
    ]
    assert consistency_check.differences(scene.climate) == []


@pytest.mark.parametrize("portion", [1, 4, OLD, 100])
def test_what_is_left_of_archived_leases_is_found_in_portions(scene: Scene, engine: Engine, portion: int) -> None:
    copied = text("CREATE TABLE kept AS SELECT * FROM leases WHERE gone AND id <> :recent")
    with engine.begin() as conn:
        conn.execute(copied, {"recent": scene.recent.id})
    scene.archive()
    with engine.connect() as conn:
        ids = sorted(conn.scalars(text("SELECT id FROM kept")))
        conn.execute(text("INSERT INTO leases SELECT * FROM kept"))
        statements: list[object] = []
        event.listen(conn, "before_execute", lambda _, statement, *__: statements.append(statement))
        assert list(stored.with_remaining_rows(conn, portion)) == ids
    assert len(ids) == OLD
    assert len(statements) == 2 * (OLD // portion + 1)


def test_files_that_are_damaged_or_away_are_reported(scene: Scene) -> None:
    scene.archive()
    first, second, third = sorted(scene.folder.glob("*.jsonl.gz"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    content = bytearray(third.read_bytes())
    content[-1] ^= 1
    third.write_bytes(content)
    told = sorted(one.what for one in consistency_check.differences(scene.climate))
    assert len(told) == 3
    assert [any(word in what for what in told) for word in ("No such file", "bytes, not", "checksum")] == [True] * 3
    for path in scene.folder.glob("*.jsonl.gz"):
        path.unlink()
    with pytest.raises(Unavailable, match="CLIMATE_ARCHIVE_DIR"):
        leases.history(scene.climate, MEMBER, scene.old.id)


def test_a_file_with_any_flipped_byte_is_reported_clearly(scene: Scene, engine: Engine) -> None:
    scene.archive()
    with reading(engine) as conn:
        found = stored.place(conn, scene.old.id)
    assert found is not None
    path, at = scene.folder / found[0], found[1]
    content = path.read_bytes()
    refused = 0
    for offset in range(0, at.size, 7):
        flipped = bytearray(content)
        flipped[at.place + offset] ^= 0xFF
        path.write_bytes(flipped)
        with suppress(Unavailable):  # the header has bytes that are not looked at
            leases.history(scene.climate, MEMBER, scene.old.id)
            continue
        refused += 1
    assert refused > at.size // 7 - 3


def test_a_name_with_an_end_of_a_line_is_read_again(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    climate = replace(climate, settings=replace(climate.settings, archive_dir=str(tmp_path)))
    lease = make(climate, clock, start=0)
    update.update(climate, MEMBER, lease.id, Changes(name="a\u2028b\x85c"))
    leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    told = leases.history(climate, MEMBER, lease.id)
    clock.forward(days=400)
    assert archives.archive(climate, YEAR).leases == 1
    assert leases.history(climate, MEMBER, lease.id) == told


@pytest.mark.parametrize("turn", cases(["first", "last"], {"last"}))
@pytest.mark.parametrize("kind", STEPS)
def test_a_run_that_is_killed_is_gone_on_with(scene: Scene, kind: str, turn: str) -> None:
    before, made = scene.facts(), Counter[str]()

    def kill(done: str) -> None:
        made[done] += 1
        if done == kind and made[done] == (1 if turn == "first" else STEPS[kind]):
            raise Killed

    with pytest.raises(Killed):
        scene.archive(kill)
    assert set(scene.facts()) == set(before), "a fact is lost"
    assert leases.history(scene.climate, MEMBER, scene.old.id)
    assert consistency_check.differences(scene.climate) == []
    scene.archive()
    assert scene.facts() == before, "a fact is lost, or doubled"
    assert consistency_check.differences(scene.climate) == []
    with reading(scene.climate.engine) as conn:
        names = {one.name for one in stored.complete(conn)}
    assert {path.name for path in scene.folder.glob("*.gz*")} == names | {f"{name}.sha256" for name in names}


REFERRED = {"leases", "events", "reservations"}
MADE = {
    "healing_waits": "INSERT INTO healing_waits VALUES (:id, 1, now(), now())",
    "leases_set_aside": "INSERT INTO leases_set_aside VALUES (:id, now(), 'its rows are wrong')",
    "claims": """INSERT INTO claims (event_id, token, queue, claimed_by, claimed_at)
        SELECT id, 7, 'q', 'somebody', now() FROM events WHERE lease_id = :id AND kind = 'end_lease'""",
}
"""Rows that may come to a lease that is gone."""


def test_each_table_that_refers_to_leases_is_emptied_or_keeps_them() -> None:
    referring = {
        table.name
        for table in metadata.tables.values()
        if table.name not in REFERRED and any(key.column.table.name in REFERRED for key in table.foreign_keys)
    }
    emptied = {str(statement).split()[2] for statement in stored._DELETED}
    kept = {table for table in referring if f"{table} " in str(stored._CHANGED)}
    assert referring - emptied == kept == {"claims", "leases_set_aside"}
    assert emptied >= REFERRED


@pytest.mark.parametrize("table", MADE)
def test_a_row_that_comes_to_a_lease_while_it_is_archived_does_not_stop_the_run(
    scene: Scene, engine: Engine, table: str
) -> None:
    made: list[str] = []

    def change(done: str) -> None:
        with engine.begin() as conn:
            if done == "known" and not made and stored.place(conn, scene.old.id):
                conn.execute(text(MADE[table]), {"id": scene.old.id})
                made.append(table)

    scene.archive(change)
    with reading(engine) as conn:
        archived = stored.place(conn, scene.old.id) is not None
        there = conn.scalar(text("SELECT count(*) FROM leases WHERE id = :id"), {"id": scene.old.id})
        facts = conn.scalar(text("SELECT count(*) FROM journal WHERE stream = :id"), {"id": scene.old.id})
        conn.execute(text("DELETE FROM claims WHERE token = 7"))
        assert conn.scalar(text("SELECT count(*) FROM archives WHERE state <> 'done'")) == 0
    assert made
    stays = table != "healing_waits"
    assert (archived, bool(there), bool(facts)) == (not stays, stays, stays)
    assert consistency_check.differences(scene.climate) == []


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_no_row_goes_while_the_file_of_an_earlier_run_is_damaged(scene: Scene, damage: str) -> None:
    before = scene.facts()

    def kill(done: str) -> None:
        if done == "known":
            raise Killed

    with pytest.raises(Killed):
        scene.archive(kill)
    (path,) = scene.folder.glob("*.jsonl.gz")
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1])
    others = OLD - SMALL.file
    outcome = scene.archive()
    assert ([name for name, _ in outcome.waiting], outcome.leases) == ([path.name], others), "the run did not go on"
    assert _absent(scene) == [path.name]
    assert scene.archive().leases == 0, "a lease is archived twice"
    path.write_bytes(content)
    assert scene.archive().waiting == []
    assert scene.facts() == before
    assert _absent(scene) == []


def _absent(scene: Scene) -> list[str]:
    with reading(scene.climate.engine) as conn:
        return archives.absent(conn, scene.climate)


@pytest.mark.parametrize("step", ["known", "rows deleted", "done"])
def test_leases_of_an_archive_that_is_lost_are_archived_again_where_their_rows_are_left(
    scene: Scene, step: str
) -> None:
    before = scene.facts()

    def kill(done: str) -> None:
        if done == step:
            raise Killed

    with pytest.raises(Killed):
        scene.archive(kill)
    (path,) = scene.folder.glob("*.jsonl.gz")
    with pytest.raises(Conflict, match="is as it was written"):
        archives.declare_lost(scene.climate, path.name)
    path.unlink()
    found = archives.declare_lost(scene.climate, path.name)
    deleted = {"known": 0, "rows deleted": SMALL.deleted, "done": SMALL.file}[step]
    assert (found.gone, found.kept) == (deleted, SMALL.file - deleted)
    assert (_absent(scene), consistency_check.differences(scene.climate)) == ([], [])
    outcome = scene.archive()
    assert (outcome.leases, outcome.waiting) == (OLD - deleted, [])
    left = scene.facts()
    assert set(left.values()) == {1}
    assert (len({one for one, _ in before} - {one for one, _ in left}), set(left) <= set(before)) == (deleted, True)
    with pytest.raises(NotFound, match="no archive is named"):
        archives.declare_lost(scene.climate, path.name)


def test_a_run_has_the_steps_at_which_others_are_killed(scene: Scene) -> None:
    made = Counter[str]()
    scene.archive(lambda done: made.update([done]))
    assert made == STEPS


def test_what_happens_to_a_lease_while_it_is_archived_keeps_it_out(scene: Scene, engine: Engine) -> None:
    with reading(engine) as conn:
        name = LeaseRenamed(scene.climate.now(conn), "kept")
    versions: list[int] = []

    def change(done: str) -> None:
        with engine.begin() as conn:
            if done == "known" and not versions and stored.place(conn, scene.old.id):
                (lease,) = rows_of.get_many(conn, [scene.old.id]).values()
                versions.append(rows_of.record(conn, ADMIN, lease, name).version)

    scene.archive(change)
    with reading(engine) as conn:
        assert conn.scalar(text("SELECT count(*) FROM journal WHERE stream = :id"), {"id": scene.old.id}) == versions[0]
        assert stored.place(conn, scene.old.id) is None
    assert consistency_check.differences(scene.climate) == []


def test_a_lease_that_keeps_something_stays(scene: Scene, engine: Engine) -> None:
    with engine.begin() as conn:
        kept = text("""
            UPDATE allocations a SET state = 'active' FROM reservations r
            WHERE r.id = a.reservation_id AND r.lease_id = :id
        """)
        conn.execute(kept, {"id": scene.old.id})
    assert scene.archive().kept == 1
    assert leases.history(scene.climate, MEMBER, scene.old.id)[0].stream == scene.old.id
    with reading(engine) as conn:
        assert conn.scalar(text("SELECT gone FROM leases WHERE id = :id"), {"id": scene.old.id})


def test_a_lease_whose_journal_has_a_hole_stays(scene: Scene, engine: Engine) -> None:
    with engine.begin() as conn:
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        conn.execute(text("DELETE FROM journal WHERE stream = :id AND version = 2"), {"id": scene.old.id})
    assert scene.archive().kept == 1
    with reading(engine) as conn:
        assert conn.scalar(text("SELECT count(*) FROM leases WHERE id = :id"), {"id": scene.old.id}) == 1


FORGED = {
    "gone": """UPDATE leases SET gone = true, updated_at = updated_at - interval '400 days',
        start_date = start_date - interval '400 days', end_date = end_date - interval '400 days' WHERE id = :id""",
    "end": "UPDATE events SET status = 'UNDONE' WHERE lease_id = :id AND kind = 'end_lease'",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_lease_that_only_its_row_calls_gone_stays(scene: Scene, clock: Clock, engine: Engine, forged: str) -> None:
    lease = scene.old
    if forged == "gone":
        lease = make(scene.climate, clock, start=0)
        run_due(scene.climate)
        clock.forward(hours=3)
        run_due(scene.climate)
        clock.forward(days=2)
    with engine.begin() as conn:
        conn.execute(text(FORGED[forged]), {"id": lease.id})
    assert scene.archive().kept == 1
    with reading(engine) as conn:
        assert stored.place(conn, lease.id) is None
        assert conn.scalar(text("SELECT count(*) FROM leases WHERE id = :id"), {"id": lease.id}) == 1


@pytest.mark.parametrize("archive", ["", "1", "2", "x"])
def test_the_database_deletes_no_fact_that_is_not_archived(scene: Scene, engine: Engine, archive: str) -> None:
    scene.archive()
    for statement in ("DELETE FROM journal", "UPDATE journal SET version = version + 10", "TRUNCATE journal"):
        with engine.connect() as conn:
            conn.execute(text("SELECT set_config('climate.archive', :id, true)"), {"id": archive})
            with pytest.raises(DBAPIError, match="append-only"):
                conn.execute(text(statement))


def test_one_archive_is_created_at_a_time(scene: Scene) -> None:
    refused: list[str] = []

    def again(done: str) -> None:
        if done == "begun":
            with pytest.raises(Busy) as error:
                scene.archive()
            refused.append(str(error.value))

    scene.archive(again)
    assert len(refused) == 3


def test_leases_that_count_in_limits_are_not_archived(scene: Scene) -> None:
    with pytest.raises(InvalidInput, match="at least 60d, not 59d"):
        archives.archive(scene.climate, timedelta(days=59))
    assert not scene.folder.exists()
