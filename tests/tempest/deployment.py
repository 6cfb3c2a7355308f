"""Deployment for Tempest: a `climate up` with one node that has the name of its service, and two images."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from tests.system.api_client import Api
from tests.system.stack import Stack
from tests.tempest.configuration import Cloud

NODE = "tempest-1"
SETTINGS = {
    "CLIMATE_COMPUTE_HOST": NODE,
    "CLIMATE_NETWORK_MANAGER": "flat_dhcp",
    "CLIMATE_FLOATING_RANGE": "198.51.100.0/26",
    "CLIMATE_PROJECT_VLANS": "2000-2999",
    # blazar-tempest-plugin reports the end of a lease as a failure if no before_end_lease may stand beside it.
    "CLIMATE_MINUTES_BEFORE_END": "0",
    # It also signs in from 10 threads at once; half of the threads may wait for the verification of a password.
    "CLIMATE_WEB_THREADS": "50",
}


@contextmanager
def running(home: Path) -> Iterator[Stack]:
    """Run a deployment as long as the block lasts."""
    stack = Stack(home, SETTINGS, arguments=())
    nodes_file.write(home, [NodeSpec(NODE, 64, 262144, 4000)])
    with started(stack):
        yield stack


@contextmanager
def started(stack: Stack) -> Iterator[Stack]:
    """Start a stack, and stop it after the block."""
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def cloud(stack: Stack) -> Cloud:
    """Create the second image, and return the properties of the deployment."""
    api = Api(stack.home, "climate")
    try:
        first = api.read("/image/v2/images")["images"][0]["id"]
        return described(stack, api, (first, uploaded(api, "tempest-alt", _empty_archive())))
    finally:
        api.close()


def described(stack: Stack, api: Api, images: tuple[str, str]) -> Cloud:
    """Return the properties of a deployment whose servers have these images."""
    flavors = {one["name"]: one["id"] for one in api.read("/compute/v2.1/flavors")["flavors"]}
    networks = api.read("/network/v2.0/networks")["networks"]
    network = next(one for one in networks if not one["router:external"])
    external = next(one for one in networks if one["router:external"])
    extensions = api.read("/network/v2.0/extensions")["extensions"]
    return Cloud(
        url=stack.url,
        password=_password(stack.home),
        images=images,
        flavors=(flavors["m1.nano"], flavors["m1.tiny"]),
        network=network["name"],
        external_network=(external["id"], external["name"]),
        extensions=tuple(one["alias"] for one in extensions),
        newest=api.read("/compute/v2.1/")["version"]["version"],
    )


def _password(home: Path) -> str:
    clouds = yaml.safe_load((home / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]
    return str(clouds["climate"]["auth"]["password"])


def _empty_archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w"):
        pass
    return content.getvalue()


def uploaded(api: Api, name: str, content: bytes, **properties: str) -> str:
    """Create a public image of this content, and return its id."""
    new = {"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public", **properties}
    answer = api.ask("POST", "/image/v2/images", new)
    assert answer.status_code == 201, answer.text
    image_id = str(answer.json()["id"])
    headers = {"X-Auth-Token": api.sign_in(), "Content-Type": "application/octet-stream"}
    stored = api.http.put(f"/image/v2/images/{image_id}/file", content=content, headers=headers)
    assert stored.status_code == 204, stored.text
    return image_id
