"""What the figures are measured with."""

from pathlib import Path

from benchmarks.processes import environ
from climate.settings import Settings


def test_the_processes_that_are_measured_have_the_settings_of_who_measures(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, use_ipv6=True, metrics_required=False, port=18000, nodes_file="nodes")
    assert Settings.from_env(environ(settings)) == settings
