"""The file that lists the nodes of a compute service."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import structlog
import yaml

from climate.compute.clusters.cluster_spec import ClusterSpec
from climate.compute.clusters.nodes_file_entry import SIZES
from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.nodes.nodes_file_entry import node_spec
from climate.file_errors import UNREADABLE, reason_of

FILE = "nodes.yaml"

log = structlog.get_logger(__name__)


@dataclass
class NodesFile:
    """The file of one service, read again after a change; while it is unreadable the last nodes stay."""

    home: Path
    file: str = FILE
    """A path relative to `home`, or absolute."""
    _known: Sequence[NodeSpec] | None = None
    _read_of: tuple[int, ...] = ()

    def nodes(self) -> Sequence[NodeSpec]:
        """Return the current nodes. VirtError if the file was never readable."""
        look = self._file_stamp()
        if self._known is None or look != self._read_of:
            self._renew()
            self._read_of = look
        return self._known or ()

    def _renew(self) -> None:
        try:
            self._known = tuple(read(self.home, self.file))
        except VirtError as error:
            if self._known is None:
                raise
            log.error("nodes file unreadable, nodes unchanged", reason=str(error), nodes=len(self._known))

    def _file_stamp(self) -> tuple[int, ...]:
        try:
            seen = (self.home / self.file).stat()
        except OSError:
            return ()
        return seen.st_mtime_ns, seen.st_size, seen.st_ino


def demo_nodes() -> list[NodeSpec]:
    """Return the nodes of the demo cloud: four large ones with GPUs and two small ordinary ones."""
    large = [NodeSpec(f"gpu-{index}", 8, 32768, 200) for index in range(1, 5)]
    return large + [NodeSpec(f"std-{index}", 4, 8192, 80) for index in range(1, 3)]


def write(home: Path, specs: Sequence[NodeSpec], file: str = FILE) -> None:
    """Write the file atomically, without the values that a node leaves open."""
    target = home / file
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.new")
    draft.write_text(yaml.safe_dump([_entry(spec) for spec in specs], sort_keys=False), encoding="utf-8")
    draft.replace(target)


def read(home: Path, file: str = FILE) -> list[NodeSpec]:
    """Return the nodes of the file; none if it does not exist. VirtError if it is invalid."""
    try:
        entries = yaml.safe_load((home / file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except UNREADABLE as error:
        raise VirtError(
            f"{home / file} cannot be read: {reason_of(error)}; a list of nodes in YAML is expected"
        ) from error
    if not isinstance(entries or [], list):
        raise VirtError(f"{file} must be a list of nodes")
    specs = [node_spec(entry) for entry in entries or []]
    _check_names(file, specs)
    _check_members(file, specs)
    return specs


def _check_names(file: str, specs: Sequence[NodeSpec]) -> None:
    """Check that no two nodes have the same name."""
    times = Counter(spec.name for spec in specs)
    for name, count in times.items():
        if count > 1:
            raise VirtError(f"{file} names node {name} twice")


def _check_members(file: str, specs: Sequence[NodeSpec]) -> None:
    """Check that no name is used twice, as a node or as a member of a cluster."""
    named = {spec.name: "a node" for spec in specs}
    for spec in specs:
        for member in spec.cluster.members if spec.cluster else ():
            if member.name in named:
                raise VirtError(f"{file} has {member.name} as a member of {spec.name}, and as {named[member.name]}")
            named[member.name] = f"a member of {spec.name}"


def _entry(spec: NodeSpec) -> Mapping[str, object]:
    said = {one.name: getattr(spec, one.name) for one in fields(spec)}
    said["supported"] = [list(triple) for triple in spec.supported]
    said["stats"], said["metrics"] = dict(spec.stats), dict(spec.metrics)
    if spec.cluster is not None:
        said = {key: value for key, value in said.items() if key not in SIZES} | _terms(spec.cluster)
    said["cluster"] = said.pop("joins")
    return {key: value for key, value in said.items() if value not in (None, "", [], {})}


def _terms(cluster: ClusterSpec) -> dict[str, object]:
    members = [{key: value for key, value in asdict(member).items() if value} for member in cluster.members]
    for one in members:
        one |= {"fence": list(one["fence"])} if "fence" in one else {}
        if "service" in one:
            one.pop("driver")
    return {"members": members, "restart": cluster.restart, "balance_percent": cluster.balance_percent}
