"""The file that says which nodes a compute service has."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from climate.compute.errors import VirtError
from climate.compute.host import NodeSpec, node_spec

FILE = "nodes.yaml"


def demo_nodes() -> list[NodeSpec]:
    """The nodes of the demo cloud: four large ones with GPUs and two ordinary small ones."""
    large = [NodeSpec(f"gpu-{place}", 8, 32768, 200) for place in range(1, 5)]
    return large + [NodeSpec(f"std-{place}", 4, 8192, 80) for place in range(1, 3)]


def write(home: Path, specs: Sequence[NodeSpec]) -> None:
    """Write the file, in one step."""
    home.mkdir(parents=True, exist_ok=True)
    entries = [{key: value for key, value in asdict(spec).items() if value not in (None, "")} for spec in specs]
    draft = home / f"{FILE}.new"
    draft.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
    draft.replace(home / FILE)


def read(home: Path) -> list[NodeSpec]:
    """The nodes there are; none when there is no file.  VirtError when it cannot be understood."""
    try:
        entries = yaml.safe_load((home / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except yaml.YAMLError as error:
        raise VirtError(f"{FILE} cannot be read: {error}") from error
    if not isinstance(entries or [], list):
        raise VirtError(f"{FILE} must be a list of nodes")
    specs = [node_spec(entry) for entry in entries or []]
    if len({spec.name for spec in specs}) < len(specs):
        raise VirtError(f"{FILE} names a node twice")
    return specs
