"""Demo tree of `climate up --demo zones`: four deployments that are zones."""

import secrets
from collections.abc import Mapping

from climate.cli.demo.tree import DemoTree, Deployment, client

PARENTS: Mapping[str, str | None] = {"parent": None, "child-1": "parent", "child-2": "parent", "grandchild": "child-1"}


def surroundings(zone: Deployment) -> dict[str, str]:
    """Return the settings of one zone."""
    return {"CLIMATE_ZONE_NAME": zone.name, "CLIMATE_BUILD_PLAN_ENCRYPTION_KEY": secrets.token_hex(32)}


def register(environ: Mapping[str, str], parent: Deployment, child: Deployment) -> None:
    """Register a deployment as a child zone of another with its administrator's account; idempotent."""
    password = (child.home / "admin-password").read_text(encoding="utf-8").strip()
    body = {"api_url": child.api_url, "username": "admin", "password": password}
    with client(parent) as api:
        known = {zone["api_url"]: zone for zone in api.json("compute", "GET", "/zones")["zones"]}
        if child.api_url in known:
            path = f"/zones/{known[child.api_url]['id']}"
            api.json("compute", "PUT", path, json={"zone": {"password": password}})
        else:
            api.json("compute", "POST", "/zones", json={"zone": body})


ZONES = DemoTree(
    noun="zone",
    parents=PARENTS,
    surroundings=surroundings,
    join=register,
    hint=lambda top: f"CLIMATE_HOME={top.home} climate zone list",
    settings={"CLIMATE_ZONE_POLL_SECONDS": "5"},
)
