"""climate openstack register: what is created, what is kept, and what is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask, request

from tests.cli.conftest import Cli, write_clouds
from tests.cli.fake_server import Wire
from tests.identity.identity_factory import served
from tests.identity.keystone.fake_keystone import PASSWORD, FakeKeystone, app_of

URL = "http://climate.example.org:8000"


@dataclass
class Catalog:
    """Regions, services and endpoints, and how often something was changed."""

    regions: list[str] = field(default_factory=lambda: ["RegionOne", "two"])
    services: list[dict[str, Any]] = field(default_factory=list)
    endpoints: list[dict[str, Any]] = field(default_factory=list)
    changes: int = 0

    def created(self, noun: str) -> tuple[dict[str, Any], int]:
        self.changes += 1
        known = self.services if noun == "service" else self.endpoints
        made = {"id": f"{noun}{len(known)}", "enabled": True, **request.get_json()[noun]}
        known.append(made)
        return {noun: made}, 201

    def updated(self, number: str) -> dict[str, Any]:
        self.changes += 1
        one = next(each for each in self.endpoints if each["id"] == number)
        one.update(request.get_json()["endpoint"])
        return {"endpoint": one}

    def urls(self) -> set[tuple[str, str, str]]:
        return {(one["region_id"], one["interface"], one["url"]) for one in self.endpoints}


def matching(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in known if all(one.get(key) == value for key, value in request.args.items())]


def with_catalog(fake: FakeKeystone, catalog: Catalog) -> Flask:
    app = app_of(fake)
    app.add_url_rule("/v3/regions", "regions", lambda: {"regions": [{"id": one} for one in catalog.regions]})
    app.add_url_rule("/v3/services", "services", lambda: {"services": matching(catalog.services)})
    app.add_url_rule("/v3/endpoints", "endpoints", lambda: {"endpoints": matching(catalog.endpoints)})
    for noun in ("service", "endpoint"):
        create = lambda noun=noun: catalog.created(noun)  # noqa: E731
        app.add_url_rule(f"/v3/{noun}s", f"create {noun}", create, methods=["POST"])
    app.add_url_rule("/v3/endpoints/<number>", "update", catalog.updated, methods=["PATCH"])
    return app


@pytest.fixture
def catalog(environ: dict[str, str], tmp_path: Path) -> Iterator[Catalog]:
    """The catalog of the Keystone that the command signs in to."""
    fake, there = FakeKeystone(), Catalog()
    with served(with_catalog(fake, there)) as port:
        auth = {"auth_url": f"http://127.0.0.1:{port}", "username": "climate", "password": PASSWORD}
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"climate": {"auth": auth}}}))
        yield there


def all_urls(url: str, region: str = "RegionOne") -> set[tuple[str, str, str]]:
    return {(region, interface, url) for interface in ("public", "internal", "admin")}


def actions(cli: Cli, *options: str) -> list[str]:
    ran = cli("openstack", "register", "--url", URL, *options, "-f", "json")
    assert ran.code == 0, ran.err
    return [row["action"] for row in ran.data]


def test_the_second_run_changes_nothing(cli: Cli, catalog: Catalog) -> None:
    assert actions(cli, "--dry-run") == ["created"] * 4
    assert catalog.changes == 0
    assert actions(cli) == ["created"] * 4
    assert [(one["type"], one["name"]) for one in catalog.services] == [("reservation", "climate")]
    assert catalog.urls() == all_urls(f"{URL}/reservation/v1")
    assert {one["service_id"] for one in catalog.endpoints} == {"service0"}
    assert catalog.changes == 4
    assert actions(cli) == ["kept"] * 4
    assert catalog.changes == 4


def test_later_commands_do_not_use_a_token_with_the_former_catalog(cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
    actions(cli)
    assert list((tmp_path / "nobody" / ".cache" / "climate" / "tokens").iterdir()) == []


def test_what_is_missing_is_added_and_a_disabled_endpoint_enabled(cli: Cli, catalog: Catalog) -> None:
    actions(cli)
    del catalog.endpoints[1]
    catalog.endpoints[0]["enabled"] = False
    assert actions(cli) == ["kept", "updated, was disabled", "created", "kept"]
    assert all(one["enabled"] for one in catalog.endpoints)


def test_each_region_has_its_own_endpoints(cli: Cli, catalog: Catalog) -> None:
    actions(cli)
    assert actions(cli, "--region", "two") == ["kept", "created", "created", "created"]
    assert catalog.urls() == all_urls(f"{URL}/reservation/v1") | all_urls(f"{URL}/reservation/v1", "two")


def test_endpoints_of_another_service_are_kept_unless_asked(cli: Cli, catalog: Catalog) -> None:
    blazar = "http://blazar.example.org:1234/v1"
    catalog.services.append({"id": "b", "type": "reservation", "name": "blazar", "enabled": True})
    catalog.endpoints.append(
        {"id": "e", "service_id": "b", "interface": "public", "url": blazar, "region_id": "RegionOne", "enabled": True}
    )
    refused = cli("openstack", "register", "--url", URL)
    assert (refused.code, catalog.changes) == (5, 0)
    assert blazar in refused.err
    assert "--replace" in refused.err
    assert actions(cli, "--replace") == ["kept", f"updated, was {blazar}", "created", "created"]
    assert catalog.urls() == all_urls(f"{URL}/reservation/v1")
    assert len(catalog.services) == 1


def test_several_services_of_a_type_are_not_guessed(cli: Cli, catalog: Catalog) -> None:
    catalog.services += [{"id": one, "type": "reservation", "name": one} for one in ("blazar", "other")]
    refused = cli("openstack", "register", "--url", URL)
    assert (refused.code, "several services" in refused.err, catalog.changes) == (5, True, 0)
    catalog.services.append({"id": "c", "type": "reservation", "name": "climate"})
    assert actions(cli) == ["kept", "created", "created", "created"]


def test_services_of_the_bundled_cloud_are_registered_on_request(
    cli: Cli, catalog: Catalog, environ: dict[str, str]
) -> None:
    assert actions(cli, "--service", "compute", "--service", "image") == ["created"] * 8
    assert catalog.urls() == all_urls(f"{URL}/compute/v2.1") | all_urls(f"{URL}/image")
    environ["CLIMATE_CLOUD"] = "openstack"
    refused = cli("openstack", "register", "--url", URL, "--service", "compute")
    assert (refused.code, "only the service reservation" in refused.err) == (2, True)


def test_an_unknown_region_is_refused(cli: Cli, catalog: Catalog) -> None:
    refused = cli("openstack", "register", "--url", URL, "--region", "three")
    assert (refused.code, catalog.changes) == (3, 0)
    assert "RegionOne, two" in refused.err


@pytest.mark.parametrize(
    "url", ["climate", "ftp://a", "http://", "http://a:x", "http://a/?b=c", "http://u:p@a", "http://ä"]
)
def test_an_unusable_url_is_refused(cli: Cli, catalog: Catalog, url: str) -> None:
    refused = cli("openstack", "register", "--url", url)
    assert (refused.code, "is not a base URL" in refused.err, catalog.changes) == (2, True, 0)


def test_the_bundled_identity_has_a_catalog_already(cli: Cli, wire: Wire, tmp_path: Path) -> None:
    write_clouds(tmp_path, wire.url)
    refused = cli("openstack", "register", "--url", URL)
    assert refused.code == 2
    assert "bundled identity" in refused.err
