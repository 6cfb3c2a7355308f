"""Each guard of the protocol is needed: without it, one of the named tests fails."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.campaign import length

ROOT = Path(__file__).parents[2]
TREES = ("climate", "plugins", "api", "workers", "tests", "migrations")
EVENTS, HOLDS = "tests/service/events/test_events.py", "tests/service/leases/test_confirmation.py"
MATCHING, JOINT = "tests/domain/hosts/test_", "climate/service/leases/joint_allocation.py"
HOST_QUERIES = "tests/store/allocation/test_host_queries.py"
ORDER, RACES, LATE = (f"tests/scenarios/test_{name}.py" for name in ("event_order", "races", "late_workers"))


@dataclass(frozen=True)
class Mutant:
    """A guard that is taken away by replacing texts, and the tests of which at least one must notice."""

    name: str
    edits: Sequence[tuple[str, str, str]]
    tests: Sequence[str]


MUTANTS = (
    Mutant(
        "a result is recorded whoever brings it",
        [
            (
                "climate/store/leases/event_claims.py",
                "_SETTLE = delete(claims).where(_MINE)",
                '_SETTLE = delete(claims).where(claims.c.event_id == bindparam("id", type_=Uuid))',
            )
        ],
        [f"{LATE}::test_what_the_late_worker_says_while_another_is_at_it_is_not_recorded"],
    ),
    Mutant(
        "every message starts the work",
        [("climate/store/leases/event_claims.py", ".where(_MINE, claims.c.started_at.is_(None))", ".where(_MINE)")],
        ["tests/scenarios/test_duplicate_delivery.py::test_a_message_is_dropped_while_another_worker_is_at_it"],
    ),
    Mutant(
        "any token starts the work",
        [
            (
                "climate/store/leases/event_claims.py",
                ".where(_MINE, claims.c.started_at.is_(None))",
                '.where(claims.c.event_id == bindparam("id", type_=Uuid), claims.c.started_at.is_(None))',
            )
        ],
        [f"{EVENTS}::test_a_forged_or_foreign_message_does_nothing"],
    ),
    Mutant(
        "hosts are not looked at again once their rows are locked",
        [
            (
                "climate/store/allocation/hosts.py",
                "return locked, _still_free(conn, locked, request) if",
                "return locked, locked if",
            ),
            (
                "climate/store/allocation/hosts.py",
                "return locked, [number for number, is_free in looked_at if is_free]",
                "return locked, locked",
            ),
            (
                "climate/store/allocation/hosts.py",
                "still = _still_free(conn, candidates, request)",
                "still = candidates",
            ),
        ],
        [
            f"{HOST_QUERIES}::test_many_hosts_are_looked_at_again_once_their_rows_are_locked",
            f"{HOST_QUERIES}::test_no_host_is_picked_that_another_transaction_changes_before_its_lock",
            f"{HOST_QUERIES}::test_hosts_that_change_while_a_patient_search_waits_for_their_rows_are_not_picked",
        ],
    ),
    Mutant(
        "few hosts are not looked at again once their rows are locked",
        [
            (
                "climate/store/allocation/hosts.py",
                "return locked, [number for number, is_free in looked_at if is_free]",
                "return locked, locked",
            )
        ],
        [f"{HOST_QUERIES}::test_all_rows_that_a_search_locks_are_noted"],
    ),
    Mutant(
        "whether few hosts still suit is not asked again",
        [
            (
                "climate/store/allocation/host_queries.py",
                "sampled_with_recheck=_looked_at_again(anywhere.where(usable)),",
                "sampled_with_recheck=_looked_at_again(anywhere),",
            )
        ],
        [f"{HOST_QUERIES}::test_a_host_that_still_suits_is_picked_in_place_of_those_that_do_not"],
    ),
    Mutant(
        "whether a host still suits is not asked again",
        [("climate/store/allocation/hosts.py", "still = _still_free(conn, candidates, request)", "still = candidates")],
        [f"{HOST_QUERIES}::test_hosts_that_change_while_a_patient_search_waits_for_their_rows_are_not_picked"],
    ),
    Mutant(
        "an active lease takes any hosts",
        [
            (
                "climate/store/allocation/hosts.py",
                "if len(picked) < request.most or not set(request.must) <= set(picked):",
                "if len(picked) < wanted.most:",
            )
        ],
        [f"{RACES}::test_an_active_lease_waits_for_its_own_hosts_rather_than_take_others"],
    ),
    Mutant(
        "reservations of a lease do not know of each other",
        [
            (
                "climate/service/leases/reservations.py",
                "taken=(*request.avoided, *(hold.host for one in planned for hold in one.holds))",
                "taken=request.avoided",
            )
        ],
        ["tests/service/leases/test_leases.py::test_reservations_of_one_lease_never_share_a_host"],
    ),
    Mutant(
        "no constraint",
        [
            (
                "climate/store/tables/leases.py",
                '(text("int8range(host, host, \'[]\')"), "&&"),',
                '(text("int8range(id, id, \'[]\')"), "&&"),',
            )
        ],
        [f"{RACES}::test_the_database_itself_refuses"],
    ),
    Mutant(
        "the journal can be changed",
        [
            (
                "climate/store/tables/leases.py",
                "BEFORE UPDATE OR DELETE OR TRUNCATE ON journal",
                "BEFORE DELETE ON journal",
            )
        ],
        [f"{RACES}::test_the_journal_is_append_only"],
    ),
    Mutant(
        "what a rival claimed meanwhile is claimed again",
        [
            (
                "climate/service/events/event_dispatch.py",
                "in event_transitions.due(lease, now) if",
                "in lease.events if",
            ),
            (
                "climate/store/leases/due_events.py",
                "key_share=True, skip_locked=True)",
                "key_share=True)",
            ),
            (
                "climate/domain/events/event_transitions.py",
                "if status not in EVENT_MOVES[event.status]:",
                "if not status:",
            ),
        ],
        [f"{RACES}::test_an_event_is_not_claimed_beside_a_rival_that_is_about_to_commit"],
    ),
    Mutant(
        "a start does not wait for the earlier holder of its hosts",
        [
            ("climate/store/leases/due_events.py", "| ~waits", "| ~waits | true()"),
        ],
        [f"{ORDER}::test_a_failed_end_keeps_its_hosts_and_blocks_their_next_start"],
    ),
    Mutant(
        "an adjustment does not wait for it",
        [
            (
                "climate/store/leases/due_events.py",
                "e.c.kind.not_in((EventKind.START, EventKind.ADJUST))",
                "e.c.kind.not_in((EventKind.START,))",
            )
        ],
        [f"{ORDER}::test_an_adjustment_waits_for_the_earlier_holder_of_its_host_too"],
    ),
    Mutant(
        "ends do not come first",
        [
            (
                "climate/store/leases/due_events.py",
                "case((e.c.kind.in_((EventKind.END, EventKind.EXPIRE)), 0), else_=1)",
                "case((e.c.kind.in_((EventKind.END, EventKind.EXPIRE)), 1), else_=1)",
            )
        ],
        [f"{ORDER}::test_ends_come_before_starts"],
    ),
    Mutant(
        "projects do not take turns",
        [("climate/store/leases/due_events.py", "partition_by=(lease.c.project_id, is_end)", "partition_by=is_end")],
        [f"{ORDER}::test_projects_take_turns"],
    ),
    Mutant(
        "events come in the order of their times",
        [
            (
                "climate/domain/events/event_transitions.py",
                "at_once = [event for event in undone if event.kind is not EventKind.ADDITIONAL][:1]",
                "at_once = sorted((e for e in undone if e.kind is not EventKind.ADDITIONAL), "
                "key=lambda e: e.run_at)[:1]",
            )
        ],
        ["tests/domain/events/test_event_transitions.py"],
    ),
    Mutant(
        "steps are not bound to the claim",
        [("climate/service/events/cloud_steps.py", "if state is None:", "if False:")],
        [f"{LATE}::test_a_worker_that_lost_its_event_asks_for_nothing_more"],
    ),
    Mutant(
        "steps that are done are done again",
        [("climate/service/events/cloud_steps.py", 'if self._plan(step) != "DONE":', "if self._plan(step):")],
        [f"{EVENTS}::test_steps_that_are_done_are_passed_over"],
    ),
    Mutant(
        "a start that is tried anew counts as never begun",
        [
            (
                "climate/domain/lease.py",
                "return self.event(EventKind.START).token > 0",
                "return self.event(EventKind.START).first_claimed_at is not None",
            )
        ],
        ["tests/domain/test_lease.py"],
    ),
    Mutant(
        "the same key may be used twice at once",
        [
            (
                "climate/store/idempotency.py",
                "if not conn.scalar(select(func.pg_try_advisory_xact_lock(number))):",
                "if number == 0.5:",
            )
        ],
        [f"{RACES}::test_the_same_key_at_once_makes_one_lease"],
    ),
    Mutant(
        "digits of other scripts are numbers to Python alone",
        [("climate/domain/hosts/requirements.py", "[+-]?([0-9]{1,18}(", "[+-]?(\\d{1,18}(")],
        ["tests/domain/hosts/test_requirements.py", "tests/store/allocation/test_requirements_sql.py"],
    ),
    Mutant(
        "a held lease starts",
        [
            (
                "climate/store/leases/rows.py",
                "EventKind.EXPIRE: 0,",
                "EventKind.EXPIRE: 99,",
            ),
            (
                "climate/domain/events/event_transitions.py",
                "at_once = [event for event in undone if event.kind is not EventKind.ADDITIONAL][:1]",
                "at_once = sorted((e for e in undone if e.kind is not EventKind.ADDITIONAL), "
                "key=lambda e: e.run_at)[:1]",
            ),
        ],
        [f"{HOLDS}::test_what_is_held_is_kept_and_nothing_of_it_starts"],
    ),
    Mutant(
        "a hold is confirmed after its time",
        [("climate/domain/planning/holds.py", " or expiry.due_at <= now", "")],
        [f"{HOLDS}::test_its_time_ends_the_hold_even_while_no_poller_lives"],
    ),
    Mutant(
        "a hold is confirmed although its end has begun",
        [("climate/domain/planning/holds.py", "expiry.stage is not UNDONE or", "")],
        [f"{HOLDS}::test_a_confirmation_waits_for_a_claim_and_is_refused"],
    ),
    Mutant(
        "any key repeats a confirmation",
        [("climate/service/leases/confirmation.py", "if entry.fact.key != key:", "if False:")],
        [f"{HOLDS}::test_a_second_confirmation_under_the_same_key_has_the_same_answer"],
    ),
    Mutant(
        "the edit of a lease does not wait for its claim",
        [
            (
                "climate/domain/events/event_transitions.py",
                "if event.status is IN_PROGRESS:\n            raise Busy",
                "if False:\n            raise Busy",
            )
        ],
        ["tests/service/leases/test_update.py::test_no_change_while_an_event_runs"],
    ),
    Mutant(
        "a demand takes no host that another holds",
        [("climate/domain/hosts/min_cost_flow.py", "for other in range(len(self._demands)):", "for other in ():")],
        [
            f"{MATCHING}min_cost_flow.py::test_a_demand_takes_other_hosts_where_those_it_prefers_are_all_that_another_can_have"
        ],
    ),
    Mutant(
        "drawbacks of hosts do not count",
        [("climate/domain/hosts/min_cost_flow.py", "* (hosts ** demand.drawbacks.get(host, 0))", "* hosts")],
        [f"{MATCHING}min_cost_flow.py::test_the_chosen_hosts_are_the_best_and_the_shares_fair"],
    ),
    Mutant(
        "a closed pool gives more than its users have of it",
        [("climate/domain/hosts/packing.py", "self.caps.get(host, self.amount), ", "")],
        [f"{MATCHING}packing.py::test_no_more_slots_than_a_host_may_give"],
    ),
    Mutant(
        "no host is left whole",
        [("climate/domain/hosts/packing.py", "yield place, (0,) * len(rest), rest, spare, self._following[place]", "")],
        [f"{MATCHING}matching.py::test_match_agrees_with_brute_force"],
    ),
    Mutant(
        "a refusal names more reservations than cannot be had together",
        [("climate/domain/hosts/matching.py", "needed.remove(place)", "pass")],
        [f"{MATCHING}matching.py::test_match_agrees_with_brute_force"],
    ),
    Mutant(
        "the choice for all reservations is not looked at again",
        [(JOINT, "matching.holds(demands, rooms, chosen)", "bool(chosen)")],
        [
            "tests/service/leases/test_joint_allocation.py::test_a_host_is_removed_while_the_choice_for_all_waits_for_its_row"
        ],
    ),
    Mutant(
        "reservations that do not change keep their hosts from the others",
        [(JOINT, "if movable != asked else None", "if movable == asked else None")],
        ["tests/service/leases/test_joint_allocation.py::test_an_update_moves_what_did_not_change_if_that_is_needed"],
    ),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, to be spoilt at will; files keep their times, so what is compiled stays valid but for spoilt ones."""
    root = tmp_path_factory.mktemp("mutants")
    for name in TREES:
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@pytest.fixture
def spoilt(copy: Path, mutant: Mutant) -> Iterator[Path]:
    """The copy without the guard, for the time of the test."""
    whole = {path: (copy / path).read_text() for path, _, _ in mutant.edits}
    for path, old, new in mutant.edits:
        before = (copy / path).read_text()
        assert before.count(old) == 1, f"{old!r} is not, or not only once, in {path}: bring the mutant up to date"
        (copy / path).write_text(before.replace(old, new))
    yield copy
    for path, text in whole.items():
        (copy / path).write_text(text)


def passes(root: Path, server_url: str, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    environ["CLIMATE_TEST_DATABASE_URL"] = server_url
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "--timeout=60",
        *tests,
    ]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=540)


def test_each_mutant_fits_the_code() -> None:
    for mutant in MUTANTS:
        for path, old, _ in mutant.edits:
            found = (ROOT / path).read_text(encoding="utf-8").count(old)
            assert found == 1, f"{mutant.name}: {old!r} is {found} times in {path}; update the mutant"


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_named_tests_pass_as_long_as_nothing_is_taken_away(copy: Path, server_url: str) -> None:
    tests = sorted({test for mutant in MUTANTS for test in mutant.tests})
    ran = passes(copy, server_url, tests)
    assert ran.returncode == 0, ran.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", length(MUTANTS[::5], MUTANTS), ids=lambda mutant: mutant.name)
def test_without_its_guard_a_promise_is_broken(spoilt: Path, server_url: str, mutant: Mutant) -> None:
    ran = passes(spoilt, server_url, mutant.tests)
    assert ran.returncode == 1, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "failed" in ran.stdout
