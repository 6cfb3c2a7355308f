"""Links in the answers of child zones, rewritten to this zone."""

from collections.abc import Mapping
from typing import Any

from api.compute.servers import view
from api.request_context import deployment

ROOTS = ("/compute/", "/image/")
"""Path prefixes of resources; the part before them is the public URL of the child."""

Body = dict[str, object]


def rewrite_links(body: Any) -> Any:
    """Return a child's answer with the public URL of this zone in its links; links without equivalent are left out."""
    if isinstance(body, list):
        return [rewrite_links(entry) for entry in body]
    if not isinstance(body, dict):
        return body
    return {
        key: _links(value) if key == "links" else rewrite_links(value) if isinstance(value, (dict, list)) else value
        for key, value in body.items()
    }


def listed(server: Body) -> Body:
    """Return a child's server for a list, with links even if its zone does not answer."""
    links = view.links(f"servers/{server['id']}")
    return {"links": links, **rewrite_links(server)}


def url(there: str) -> str:
    """Return the URL of the same resource in this zone; empty if there is none."""
    for root in ROOTS:
        _, result, path = there.partition(root)
        if result:
            return f"{deployment().settings.base_url}{root}{path}"
    return ""


def _links(links: object) -> object:
    if not isinstance(links, list):
        return rewrite_links(links)
    led = [{**link, "href": url(str(link.get("href")))} for link in links if isinstance(link, Mapping)]
    return [link for link in led if link["href"]]
