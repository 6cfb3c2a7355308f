"""climate openstack: climate in the catalog of an OpenStack's Keystone."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

import click

from climate.cli.connection.client import BUNDLED, Client, Json
from climate.cli.connection.http_protocols import Sent
from climate.cli.connection.session import current
from climate.cli.errors import CONFLICT, NOT_FOUND, USAGE, Failure
from climate.cli.options import dry_run as with_dry_run
from climate.cli.options import output_options

if TYPE_CHECKING:
    from climate.cli.response_types.catalog import Region, Service, ServiceEndpoint

INTERFACES = ("public", "internal", "admin")

SERVICES = {
    "reservation": ("climate", "Reservation of hosts and servers", "/reservation/v1"),
    "compute": ("climate-compute", "Servers of climate's cloud", "/compute/v2.1"),
    "image": ("climate-image", "Images of climate's cloud", "/image"),
    "network": ("climate-network", "Networks of climate's cloud", "/network"),
    "volumev3": ("climate-volume", "Volumes of climate's cloud", "/volume/v3"),
}
"""Maps a type to the name, the description and the path of its service."""

Row = dict[str, str]


@click.group("openstack")
def group() -> None:
    """The OpenStack whose Keystone is the identity."""


@group.command("register")
@click.option("--url", help="Base URL of climate for clients; by default CLIMATE_PUBLIC_URL.")
@click.option("--region", help="Region of the endpoints; by default that of the cloud, else RegionOne.")
@click.option(
    "--service", "services", type=click.Choice(list(SERVICES)), multiple=True, default=("reservation",),
    show_default=True, help="Service to register; repeatable. All but reservation are those of the bundled cloud.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Change endpoints that have another URL, such as those of Blazar.")
@with_dry_run
@output_options
def register(url: str | None, region: str | None, services: tuple[str, ...], replace: bool, dry_run: bool) -> None:
    """Create the service and its endpoints in Keystone's catalog, as an administrator of that Keystone.

    Entries that exist already are kept.
    """
    session = current()
    if session.settings.cloud == "openstack" and set(services) != {"reservation"}:
        raise Failure("with CLIMATE_CLOUD=openstack only the service reservation is climate's", USAGE)
    base = _base(url or session.settings.base_url)
    catalog = Catalog(session.client, dry_run)
    place = catalog.region(region or session.client.cloud.region or "RegionOne")
    plan = [(kind, *catalog.state(kind, place)) for kind in services]
    for kind, _, endpoints in plan:
        _check(kind, endpoints, base + SERVICES[kind][2], replace)
    rows = [
        row
        for kind, service, endpoints in plan
        for row in catalog.register(kind, service, endpoints, base + SERVICES[kind][2], place)
    ]
    session.client.cache.drop(session.client.cloud)  # the kept token has the former catalog
    session.show_all(rows, ("service", "interface", "region", "url", "action"))
    if dry_run:
        session.say("dry run: nothing was changed")


def _base(url: str) -> str:
    """Return a base URL without its last slash. Raise Failure for one that clients cannot use."""
    try:
        read = urlsplit(url)
        good = read.scheme in ("http", "https") and bool(read.hostname) and (read.port or 1) > 0
    except ValueError:
        good = False
    if not good or read.query or read.fragment or read.username or not url.isascii() or not url.isprintable():
        raise Failure(f"{url[:200]!r} is not a base URL", USAGE, "such as --url http://reservations.example.org:8000")
    return url.rstrip("/")


def _check(kind: str, endpoints: "list[ServiceEndpoint]", url: str, replace: bool) -> None:
    """Raise Failure for endpoints of another service, unless they are to be replaced."""
    foreign = sorted({str(endpoint["url"]) for endpoint in endpoints if endpoint["url"].rstrip("/") != url})
    if foreign and not replace:
        raise Failure(
            f"the catalog has other endpoints of type {kind}: {', '.join(foreign)}; nothing was changed",
            CONFLICT,
            "repeat with --replace to change them, with --url for another URL, or with --region for another region",
        )


class Catalog:
    """The catalog of a Keystone, changed with an administrator's token."""

    def __init__(self, client: Client, dry_run: bool) -> None:
        self._client = client
        self._dry_run = dry_run
        auth_url = client.cloud.auth_url
        self._url = auth_url if auth_url.endswith("/v3") else f"{auth_url}/v3"
        if any(one.get("name") == BUNDLED for one in client.token.body.get("catalog") or ()):
            raise Failure(
                f"{auth_url} is climate's bundled identity, whose catalog has all services",
                USAGE,
                "choose an administrator of Keystone with --os-cloud, or by the OS_* variables",
            )

    def region(self, name: str) -> str:
        """Return a region of Keystone by its id. Raise Failure for one that does not exist."""
        regions: list[Region] = self._request("GET", "/regions")["regions"]
        known = [str(one["id"]) for one in regions]
        if name not in known:
            raise Failure(f"Keystone has no region {name[:255]!r}", NOT_FOUND, f"its regions: {', '.join(known)}")
        return name

    def state(self, kind: str, region: str) -> "tuple[Service | None, list[ServiceEndpoint]]":
        """Return the service of a type, and its endpoints in a region.

        If there are several services, it is climate's. Raise Failure if none of these is.
        """
        services: list[Service] = self._request("GET", "/services", params={"type": kind})["services"]
        ours = [service for service in services if service.get("name") == SERVICES[kind][0]] or services
        if len(ours) > 1:
            ids = ", ".join(f"{one['id']} ({one.get('name') or 'no name'})" for one in ours)
            raise Failure(f"Keystone has several services of type {kind}: {ids}", CONFLICT, "delete all but one")
        if not ours:
            return None, []
        query = {"service_id": ours[0]["id"], "region_id": region}
        endpoints: list[ServiceEndpoint] = self._request("GET", "/endpoints", params=query)["endpoints"]
        return ours[0], endpoints

    def register(
        self, kind: str, service: "Service | None", endpoints: "list[ServiceEndpoint]", url: str, region: str
    ) -> Iterator[Row]:
        """Create what is missing of a service, update endpoints with another URL, and yield what was done."""
        name, description, _ = SERVICES[kind]
        action = "kept" if service else "created"
        if service is None:
            wanted: Service = {"type": kind, "name": name, "description": description, "enabled": True}
            made: Service | None = self._change("POST", "/services", "service", wanted)
            service = wanted if made is None else made
        named = {"service": f"{service.get('name') or name} ({kind})", "region": region}
        yield {**named, "interface": "", "url": "", "action": action}
        for interface in INTERFACES:
            present = [endpoint for endpoint in endpoints if endpoint["interface"] == interface]
            done = [self._endpoint(one, url) for one in present]
            if not present:
                body = {"service_id": service.get("id"), "interface": interface, "url": url, "region_id": region}
                self._change("POST", "/endpoints", "endpoint", body)
                done = ["created"]
            yield from ({**named, "interface": interface, "url": url, "action": one} for one in done)

    def _endpoint(self, present: "ServiceEndpoint", url: str) -> str:
        if present["url"].rstrip("/") == url and present.get("enabled", True):
            return "kept"
        was = "disabled" if present["url"].rstrip("/") == url else present["url"]
        self._change("PATCH", f"/endpoints/{present['id']}", "endpoint", {"url": url, "enabled": True})
        return f"updated, was {was}"

    def _change(self, method: str, path: str, noun: str, body: Mapping[str, object]) -> Json:
        """Send a change, and return the resource as it is afterwards; None for a dry run, which sends nothing."""
        return None if self._dry_run else self._request(method, path, json={noun: body})[noun]

    def _request(self, method: str, path: str, **sent: Unpack[Sent]) -> Json:
        return self._client.body(self._client.request(method, self._url + path, **sent))
