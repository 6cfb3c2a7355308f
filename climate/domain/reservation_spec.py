"""Fields of a reservation that its resource type defines."""

from collections.abc import Mapping
from typing import Any

Spec = Mapping[str, Any]
"""Values as the schema of the resource type has read them; each plugin knows the types of its own."""
