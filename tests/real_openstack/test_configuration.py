"""Configuration files of the services."""

from pathlib import Path

from tests.real_openstack import configuration
from tests.real_openstack.layout import HOSTS, Layout


def test_an_option_with_several_lines_occurs_several_times() -> None:
    assert configuration.text({"a": {"b": "1\n2"}, "c": {}}) == "[a]\nb = 1\nb = 2\n\n[c]\n"


def test_nova_has_the_filters_that_are_wanted(tmp_path: Path) -> None:
    for own in ((), (configuration.BINDING,), (configuration.BLAZAR,)):
        configuration.write(Layout(tmp_path), *own)
        text = (tmp_path / "etc" / "nova" / "nova.conf").read_text(encoding="utf-8")
        assert [each in text for each in (configuration.BINDING, configuration.BLAZAR)] == [
            each in own for each in (configuration.BINDING, configuration.BLAZAR)
        ]
        assert "available_filters = nova.scheduler.filters.all_filters\n" in text


def test_each_host_keeps_its_identity(tmp_path: Path) -> None:
    layout, found = Layout(tmp_path), []
    for _ in range(2):
        configuration.write(layout, configuration.BINDING)
        found.append([(tmp_path / "state" / host / "compute_id").read_text(encoding="utf-8") for host in HOSTS])
    assert found[0] == found[1]
    assert len(set(found[0])) == len(HOSTS)
