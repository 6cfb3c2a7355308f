"""What the figures are measured with."""

import json
import subprocess
from dataclasses import replace
from importlib.metadata import distributions, entry_points
from pathlib import Path

import pytest

from benchmarks import compare, figures, pages, pool_scaling
from benchmarks.processes import environ
from climate.domain.hosts.pool_scaling import Rules
from climate.settings import Settings


def test_a_pool_that_follows_its_backlog_refuses_less_than_a_fixed_one_of_its_mean_size() -> None:
    load = pool_scaling.Load(days=12)
    follows = pool_scaling.Pool(load, pool_scaling.RULES, seed=1).run()
    mean = round(follows.kept / (load.days * 24))
    fixed = pool_scaling.Pool(load, Rules(target=mean), seed=1).run()
    assert (fixed.asked, fixed.largest) == (follows.asked, mean)
    assert follows.refused < 0.6 * fixed.refused
    assert follows.lent / follows.kept > fixed.lent / fixed.kept


def test_a_pool_that_moves_servers_keeps_fewer_hosts_or_refuses_less() -> None:
    """Drained hosts are empty after some minutes, where they waited for hours."""
    load = pool_scaling.Load(days=6)
    waits = pool_scaling.Pool(load, pool_scaling.RULES, seed=1).run()
    moves = pool_scaling.Pool(replace(load, move_minutes=2), pool_scaling.RULES, seed=1).run()
    assert (waits.servers_moved, moves.asked) == (0, waits.asked)
    assert moves.servers_moved > 0
    assert moves.refused < waits.refused or moves.kept < waits.kept


def test_the_processes_that_are_measured_have_the_settings_of_who_measures_and_no_rate_limit(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, use_ipv6=True, metrics_required=False, port=18000, nodes_file="nodes")
    assert Settings.from_env(environ(settings)) == replace(settings, requests_per_second=0)


@pytest.mark.parametrize(
    ("shown", "quantity"),
    [
        ("1,234/s", (1234.0, "/s")),
        ("3.06 ms [2.96-3.27], p99 5.5, n = 210", (3.06, "ms")),
        ("8.80 s", (8.8, "s")),
        ("0.25 [0.20-0.30]", (0.25, "")),
        ("choosing nodes", (None, "")),
    ],
)
def test_figures_begin_with_a_quantity(shown: str, quantity: tuple[float | None, str]) -> None:
    assert figures.quantity(shown) == quantity


def test_printed_tables_are_read_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    known = len(figures.RECORD)
    figures.head("Leases, made at once")
    print("The password of user admin is 2tRkGs  (kept in /tmp/admin-password)")
    figures.line("creates", "216/s", "250/s", "4.9/s")
    with figures.step("writing leases"):
        pass
    figures.line("what dominates", "the commit")
    printed = capsys.readouterr().out
    assert figures.parse(printed) == figures.RECORD[known:]
    assert [(one.table, one.name, one.value, one.unit) for one in figures.RECORD[known:]] == [
        ("Leases, made at once", "creates", 216.0, "/s"),
        ("Leases, made at once", "what dominates", None, ""),
    ]
    figures.write(tmp_path / "figures.json", {"commit": "abc"})
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert kept["commit"] == "abc"
    assert kept["figures"][-2]["value"] == 216.0


def test_two_commits_are_compared_round_by_round(capsys: pytest.CaptureFixture[str]) -> None:
    def run(rate: float) -> dict[compare.Key, figures.Figure]:
        one = figures.Figure("Creates", "leases", f"{rate}/s", rate, "/s")
        word = figures.Figure("Creates", "what dominates", "the commit", None, "")
        return {(figure.table, figure.name): figure for figure in (one, word)}

    compare.show("main~1", [run(100), run(200), run(400)], [run(110), run(180), run(400)])
    assert capsys.readouterr().out.splitlines()[-1].split() == (
        ["leases", "200.00", "/s", "180.00", "/s", "1.00", "[0.90-1.10]"]
    )


def test_other_commit_is_checked_out_beside_this_one() -> None:
    root = Path(compare.ROOT)
    if not (root / ".git").exists():
        pytest.skip("not a checkout of git")
    with compare.other_tree("HEAD") as tree:
        assert (tree / "benchmarks" / "compare.py").exists()
        (known,) = distributions(name="climate-reservation", path=[str(tree)])
        costs = {each.name: each.value for each in known.entry_points.select(group="climate.scheduler_costs")}
    assert costs == {each.name: each.value for each in entry_points(group="climate.scheduler_costs")}
    listed = subprocess.run(["git", "worktree", "list"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert str(tree) not in listed


@pytest.mark.slow
def test_every_page_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    pages.at_the_server(hosts=8, leases=80, times=2)
    measured = {one.name for one in figures.parse(capsys.readouterr().out)}
    paths = (*pages.VIEWS, *pages.SERIES_VIEWS, *pages.OWN_VIEWS, *pages.HOST_VIEWS, *pages.MORE_VIEWS)
    made = {"/ui/leases/<id>", "/ui/leases/<id>/delete", "/ui/holds/<id>", "/ui/series/<id>", "/ui/series/<id>/delete"}
    assert measured >= {*paths, *made}
