"""Resource providers and their inventories as Placement keeps them, with what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flask import Flask, Response, jsonify, request

Inventories = dict[str, dict[str, Any]]


@dataclass
class Placement:
    """Its state by provider, open to tests; a hypervisor's provider has the name of it as its id too."""

    traits: dict[str, list[str]] = field(default_factory=dict)
    inventories: dict[str, Inventories] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Names of the providers below hypervisors."""
    generations: dict[str, int] = field(default_factory=dict)
    usages: dict[str, dict[str, int]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    """Resource classes that are not of Placement itself."""
    before: Callable[[str], None] = lambda path: None
    """Called with each request that changes something, before it is done."""

    def put(self, name: str, inventories: Inventories | None = None, provider: str = "") -> str:
        """Add a provider, and return its id."""
        provider = provider or name
        self.names[provider], self.traits[provider], self.generations[provider] = name, [], 0
        self.inventories[provider], self.usages[provider] = inventories or {}, {}
        return provider

    def named(self, name: str) -> Inventories:
        """Return the inventories of the provider of that name."""
        (provider,) = (each for each, known in self.names.items() if known == name)
        return self.inventories[provider]

    # Its answers.

    def listed(self) -> Response:
        wanted = request.args["name"]
        found = [self._view(each) for each, name in self.names.items() if name == wanted]
        return jsonify({"resource_providers": found})

    def make(self) -> Response:
        wanted = request.get_json()
        self.before(request.path)
        if wanted["parent_provider_uuid"] not in self.names:
            return refused(400, "Bad Request", "Parent provider UUID does not exist.")
        if wanted["name"] in self.names.values():
            return refused(409, "Conflict", f"Conflicting resource provider name: {wanted['name']} already exists.")
        return jsonify(self._view(self.put(wanted["name"], provider=str(uuid4()))))

    def drop(self, provider: str) -> Response:
        for kept in (self.names, self.traits, self.inventories, self.generations, self.usages):
            del kept[provider]
        return Response(status=204)

    def _view(self, provider: str) -> dict[str, Any]:
        return {"uuid": provider, "name": self.names[provider], "generation": self.generations[provider]}

    def provides(self, provider: str, what: str) -> Response:
        if provider not in self.traits:
            return refused(404, "Not Found", f"No resource provider with uuid {provider} found")
        found: Any = {"traits": self.traits, "inventories": self.inventories, "usages": self.usages}[what]
        generation = {"resource_provider_generation": self.generations.get(provider, 0)}
        return jsonify({what: found[provider], **generation})

    def store(self, provider: str) -> Response:
        """Replace the inventories; a provider of another generation, and classes in use, are conflicts."""
        self.before(request.path)
        wanted = request.get_json()
        if wanted["resource_provider_generation"] != self.generations[provider]:
            return refused(409, "Conflict", "resource provider generation conflict")
        gone = self.inventories[provider].keys() - wanted["inventories"].keys()
        if used := sorted(each for each in gone if self.usages[provider].get(each)):
            return refused(409, "Conflict", f"Inventory for '{', '.join(used)}' on resource provider in use.")
        if unknown := [each for each in wanted["inventories"] if each not in self.classes]:
            return refused(400, "Bad Request", f"Unknown resource class in inventory: {unknown[0]}")
        self.inventories[provider] = wanted["inventories"]
        self.generations[provider] += 1
        return self.provides(provider, "inventories")

    def add_class(self, name: str) -> Response:
        is_new = name not in self.classes
        self.classes.add(name)
        return Response(status=201 if is_new else 204)

    def drop_class(self, name: str) -> Response:
        if name not in self.classes:
            return refused(404, "Not Found", f"No such resource class: {name}")
        if any(name in each for each in self.inventories.values()):
            return refused(409, "Conflict", f"Cannot delete in-use resource class: {name}")
        self.classes.remove(name)
        return Response(status=204)

    def serve(self, app: Flask, root: str) -> None:
        """Add its routes to an app."""
        provider = "/resource_providers/<provider>"
        routes: tuple[tuple[str, str, Callable[..., Response]], ...] = (
            ("GET", "", _versions),
            ("GET", "/resource_providers", self.listed),
            ("POST", "/resource_providers", self.make),
            ("GET", f"{provider}/<what>", self.provides),
            ("PUT", f"{provider}/inventories", self.store),
            ("PUT", "/resource_classes/<name>", self.add_class),
            ("DELETE", "/resource_classes/<name>", self.drop_class),
            ("DELETE", provider, self.drop),
        )
        for method, path, view in routes:
            app.add_url_rule(f"{root}{path}", f"{method} {root}{path}", view, methods=[method])


def _versions() -> Response:
    links = [{"rel": "self", "href": ""}]
    known = {"id": "v1.0", "status": "CURRENT", "max_version": "1.39", "min_version": "1.0", "links": links}
    return jsonify({"versions": [known]})


def refused(status: int, title: str, detail: str) -> Response:
    entry = {"status": status, "title": title, "detail": detail, "code": "placement.undefined_code"}
    answer = jsonify({"errors": [{**entry, "request_id": "req-1"}]})
    answer.status_code = status
    return answer
