"""A namespace of metadata definitions: properties that clients may set on images, flavors and other resources."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from climate.compute.errors import BadRequest, Conflict, NotFound

PUBLIC, PRIVATE = VISIBILITIES = ("public", "private")
OBJECTS, PROPERTIES, TAGS, RESOURCE_TYPES = KINDS = ("objects", "properties", "tags", "resource_types")

MOST = 1000
"""Maximum of parts of one kind in a namespace."""

Part = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace with its parts, by kind and name."""

    namespace: str
    owner: str
    visibility: str = PRIVATE
    protected: bool = False
    display_name: str | None = None
    description: str | None = None
    parts: Mapping[str, Mapping[str, Part]] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def of(self, kind: str) -> Mapping[str, Part]:
        """Return the parts of a kind by name."""
        return self.parts.get(kind, {})

    def part(self, kind: str, name: str) -> Part:
        """Return a part. Raise NotFound if there is none."""
        if name not in self.of(kind):
            raise NotFound(f"Namespace {self.namespace} has no {name[:80]} among its {kind}.")
        return self.of(kind)[name]

    def with_new(self, kind: str, name: str, part: Part) -> "Namespace":
        """Return the namespace with one more part; Conflict if the name is taken, BadRequest beyond the maximum."""
        if name in self.of(kind):
            raise Conflict(f"Namespace {self.namespace} has {name[:80]} among its {kind} already.")
        return self._with(kind, {**self.of(kind), name: part})

    def with_changed(self, kind: str, name: str, after: str, part: Part) -> "Namespace":
        """Return the namespace with a part replaced, and perhaps renamed; NotFound, Conflict."""
        self.part(kind, name)
        return self.without(kind, name).with_new(kind, after, part)

    def without(self, kind: str, name: str) -> "Namespace":
        """Return the namespace without a part. Raise NotFound if it has no such part."""
        self.part(kind, name)
        return self._with(kind, {other: part for other, part in self.of(kind).items() if other != name})

    def with_all(self, kind: str, parts: Mapping[str, Part]) -> "Namespace":
        """Return the namespace with these parts of a kind, and no other; BadRequest beyond the maximum."""
        return self._with(kind, parts)

    def _with(self, kind: str, parts: Mapping[str, Part]) -> "Namespace":
        if len(parts) > MOST:
            raise BadRequest(f"A namespace has at most {MOST} {kind}, not {len(parts)}")
        return replace(self, parts={**self.parts, kind: parts})
