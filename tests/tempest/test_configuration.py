"""The text of tempest.conf says what the deployment has."""

from configparser import RawConfigParser
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tempest import configuration, suites
from tests.tempest.configuration import Cloud

CLOUD = Cloud(
    "http://127.0.0.1:7", "s3cret%", ("i1", "i2"), ("42", "1"), "net", ("n1", "public"), ("quotas", "agent"), "2.79"
)


def test_the_configuration_can_be_read_again() -> None:
    parser = RawConfigParser()
    parser.read_string(configuration.text(configuration.sections(CLOUD, Path("/work"))))
    assert parser["auth"]["admin_password"] == "s3cret%"
    assert parser["identity"]["uri_v3"] == "http://127.0.0.1:7/identity/v3"
    assert parser["network-feature-enabled"]["api_extensions"] == "quotas,agent"
    assert (parser["compute"]["image_ref"], parser["compute"]["max_microversion"]) == ("i1", "2.79")
    assert parser["compute-feature-enabled"].getboolean("live_migration") is False
    assert parser["DEFAULT"]["log_dir"] == "/work"


def test_servers_are_validated_where_they_have_networks() -> None:
    bare = configuration.sections(CLOUD, Path("/work"))
    assert (bare["validation"]["run_validation"], bare["service_available"]["cinder"]) == (False, False)
    whole = configuration.sections(
        replace(CLOUD, machine=Path("/var/machine.img"), hosts=("one", "two")), Path("/work")
    )
    assert whole["validation"]["run_validation"] is True
    assert whole["scenario"]["img_file"] == Path("/var/machine.img")
    assert (whole["service_available"]["cinder"], whole["service_available"]["swift"]) == (True, False)
    assert (whole["compute"]["min_compute_nodes"], whole["compute"]["migration_dest_host"]) == (2, "two")
    assert whole["network"]["floating_network_name"] == "public"


def test_unknown_suites_are_named() -> None:
    with pytest.raises(ValueError, match="unknown suite volume: use blazar"):
        suites.chosen(["volume", "image"])
    assert list(suites.chosen(["image", "compute"])) == ["compute", "image"]
    assert list(suites.chosen([])) == list(suites.SUITES)
