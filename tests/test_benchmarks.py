"""What the figures are measured with."""

from pathlib import Path

from benchmarks import pool_filling
from benchmarks.processes import environ
from climate.domain.filling import Rules
from climate.settings import Settings


def test_a_pool_that_follows_its_backlog_refuses_less_than_a_fixed_one_of_its_mean_size() -> None:
    load = pool_filling.Load(days=12)
    follows = pool_filling.Pool(load, pool_filling.RULES, seed=1).run()
    mean = round(follows.kept / (load.days * 24))
    fixed = pool_filling.Pool(load, Rules(target=mean), seed=1).run()
    assert (fixed.asked, fixed.largest) == (follows.asked, mean)
    assert follows.refused < 0.6 * fixed.refused
    assert follows.lent / follows.kept > fixed.lent / fixed.kept


def test_the_processes_that_are_measured_have_the_settings_of_who_measures(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, use_ipv6=True, metrics_required=False, port=18000, nodes_file="nodes")
    assert Settings.from_env(environ(settings)) == settings
