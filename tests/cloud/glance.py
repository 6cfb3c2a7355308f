"""Images as Glance lists them: newest first, page by page."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flask import Flask, Response, jsonify, request

PAGE_SIZE = 25
"""Images of an answer to a request without a limit."""

REFUSAL = "<html><head><title>{0}</title></head><body><h1>{0}</h1>{1}<br /><br /></body></html>"


@dataclass
class Glance:
    """Its images by id, in the order of their creation; open to tests."""

    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    page_size: int = PAGE_SIZE

    def put(self, name: str, status: str = "queued", **properties: str) -> dict[str, Any]:
        """An image that is there already."""
        image_id = str(uuid4())
        made = {"id": image_id, "name": name, "status": status, "visibility": "shared", "tags": [], **properties}
        self.images[image_id] = made
        return made

    # Its answers.

    def make(self) -> Response:
        wanted = request.get_json()
        return _answer(201, self.put(wanted.pop("name"), **wanted))

    def upload(self, image_id: str) -> Response:
        self.images[image_id]["status"] = "active"
        return Response(status=204)

    def listed(self) -> Response:
        found = [each for each in reversed(self.images.values()) if each["name"] == request.args.get("name")]
        ids, marker = [each["id"] for each in found], request.args.get("marker")
        if marker is not None and marker not in self.images:
            return _refused(400, "400 Bad Request", f"Invalid marker: image {marker} could not be found.")
        rest = found[ids.index(marker) + 1 :] if marker else found
        page = rest[: int(request.args.get("limit", self.page_size))]
        more = {"next": f"/v2/images?marker={page[-1]['id']}"} if len(page) < len(rest) else {}
        return _answer(200, {"images": page, "first": "/v2/images", "schema": "/v2/schemas/images", **more})

    def drop(self, image_id: str) -> Response:
        if self.images.pop(image_id, None) is None:
            return _refused(404, "404 Not Found", f"Failed to find image {image_id} to delete")
        return Response(status=204)

    def serve(self, app: Flask, root: str) -> None:
        """Add its routes to an app."""
        app.add_url_rule(root, root, _versions)
        images, one = f"{root}/v2/images", f"{root}/v2/images/<image_id>"
        app.add_url_rule(images, f"GET {images}", self.listed)
        app.add_url_rule(images, f"POST {images}", self.make, methods=["POST"])
        app.add_url_rule(f"{one}/file", f"PUT {images}", self.upload, methods=["PUT"])
        app.add_url_rule(one, f"DELETE {images}", self.drop, methods=["DELETE"])


def _versions() -> Response:
    links = [{"rel": "self", "href": f"{request.base_url}/v2/"}]
    return _answer(300, {"versions": [{"id": "v2.17", "status": "CURRENT", "links": links}]})


def _refused(status: int, title: str, reason: str) -> Response:
    return Response(REFUSAL.format(title, reason), status=status, mimetype="text/html")


def _answer(status: int, body: Any) -> Response:
    answer = jsonify(body)
    answer.status_code = status
    return answer
