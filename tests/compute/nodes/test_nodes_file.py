"""The file of nodes: every key, every complaint, and what happens while it cannot be read."""

import json
from pathlib import Path

import pytest

from climate.compute.clusters.cluster_spec import ClusterSpec, MemberSpec
from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from climate.compute.nodes.nodes_file import NodesFile

PLAIN = "name: a, vcpus: 1, memory_mb: 1, local_gb: 1"
FULL = NodeSpec(
    "domain-1000(MyCluster)",
    8,
    8192,
    100,
    driver="memory",
    hypervisor_type="xen",
    hypervisor_version=4,
    cpu_info=json.dumps({"arch": "x86_64", "features": ["vmx"]}),
    zone="east",
    host_ip="10.0.0.7",
    ram_ratio=1.25,
    cpu_ratio=4.0,
    disk_ratio=0.5,
    reserved_ram_mb=0,
    reserved_disk_mb=1024,
    disk_least_gb=40,
    supported=(("x86_64", "xen", "hvm"),),
    stats={"gpu": {"model": "a100", "count": 4}},
    metrics={"cpu.percent": 12.5},
)


SUMMED = NodeSpec(
    "sum",
    0,
    0,
    0,
    driver="cluster",
    ram_ratio=1.0,
    cluster=ClusterSpec(
        (
            MemberSpec("m1", "qemu", 4, 4096, 40, maintenance=True),
            MemberSpec("m2", service="rack-7", fence=("off", "7")),
        ),
        restart=False,
        balance_percent=0,
    ),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = [FULL, SUMMED, *nodes_file.demo_nodes()]
    nodes_file.write(tmp_path, written, "more/of.yaml")
    assert nodes_file.read(tmp_path, "more/of.yaml") == written
    assert nodes_file.read(tmp_path) == []


def test_a_path_from_the_root_is_taken_as_it_is(tmp_path: Path) -> None:
    nodes_file.write(tmp_path / "home", [FULL], str(tmp_path / "else.yaml"))
    assert (tmp_path / "else.yaml").exists()
    assert nodes_file.read(tmp_path / "home", str(tmp_path / "else.yaml")) == [FULL]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{arch: x86_64}", '{"arch": "x86_64"}'),
        ("""'{"arch": "arm"}'""", '{"arch": "arm"}'),
        ("Xeon 5", '{"model": "Xeon 5"}'),
        ("'[1]'", '{"model": "[1]"}'),
        ("''", ""),
    ],
)
def test_cpu_info_is_json_however_it_is_written(tmp_path: Path, written: str, read: str) -> None:
    (tmp_path / nodes_file.FILE).write_text(f"- {{{PLAIN}, cpu_info: {written}}}")
    assert [node.cpu_info for node in nodes_file.read(tmp_path)] == [read]


def test_a_ratio_of_zero_is_that_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / nodes_file.FILE).write_text(f"- {{{PLAIN}, ram_ratio: 0.0, cpu_ratio: 2}}")
    node = nodes_file.read(tmp_path)[0]
    assert (node.ram_ratio, node.cpu_ratio, node.disk_ratio) == (None, 2.0, None)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("vcpus: 1", "a node needs a name"),
        ("name: a, vcpus: 1, memory_mb: 1", "node a: local_gb must be given"),
        ("name: a, vcpus: x, memory_mb: 1, local_gb: 1", "node a: vcpus must be a whole number .* not 'x'"),
        ("name: a, vcpus: 3000000000, memory_mb: 1, local_gb: 1", "node a: vcpus must be a whole number from 0 to"),
        (f"{PLAIN}, ram_ration: 2", "node a: there is no key ram_ration; there are name, driver"),
        (f"{PLAIN}, ram_ratio: -1", "node a: ram_ratio must be a number from 0, not '-1'"),
        (f"{PLAIN}, cpu_ratio: .nan", "node a: cpu_ratio must be a number"),
        (f"{PLAIN}, reserved_ram_mb: -1", "node a: reserved_ram_mb must be a whole number"),
        (f"{PLAIN}, host_ip: 300.1.1.1", "node a: host_ip must be an IP address, not '300.1.1.1'"),
        (f"{PLAIN}, supported: [x86_64]", r"node a: supported must be a list of \[architecture"),
        (f"{PLAIN}, supported: [[x86_64, kvm]]", "node a: supported must be"),
        (f"{PLAIN}, stats: [1]", "node a: stats must be an object of texts"),
        (f"{PLAIN}, stats: {{since: 2020-01-01}}", "node a: stats must be an object of texts"),
        (f"{PLAIN}, metrics: {{load: high}}", "node a: metrics must be an object of numbers"),
        (f"{PLAIN}, cpu_info: 4", "node a: cpu_info must be an object or a text"),
        (f"{PLAIN}, zone: ['a']", "node a: zone must be a text"),
    ],
)
def test_what_is_wrong_is_named_with_its_node_and_key(tmp_path: Path, entry: str, says: str) -> None:
    (tmp_path / nodes_file.FILE).write_text(f"- {{{entry}}}")
    with pytest.raises(VirtError, match=says):
        nodes_file.read(tmp_path)


M1, M2 = "{name: m1, vcpus: 1, memory_mb: 1, local_gb: 1}", "{name: m2, service: rack-7}"


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("", "node c: members must be a list of at least one member"),
        ("members: []", "node c: members must be a list of at least one member"),
        ("members: [7]", "node c: a member needs a name: 7"),
        (f"vcpus: 4, members: [{M1}]", "node c: vcpus is the sum over the members of a cluster"),
        ("members: [{name: m1, vcpus: 1, memory_mb: 1}]", "node c: member m1: local_gb must be given"),
        ("members: [{name: m1, ram: 1}]", "node c: member m1 has no key ram; there are name, driver"),
        ("members: [{name: m1, vcpus: 0, memory_mb: 1, local_gb: 1}]", "member m1: sizes are whole numbers from 1"),
        ("members: [{name: m1, driver: cluster}]", "member m1: a cluster cannot be a member of a cluster"),
        (f"members: [{M1}, {M1}]", "node c: members names m1 twice"),
        (
            f"members: [{M1}, {{name: x, driver: qemu, vcpus: 1, memory_mb: 1, local_gb: 1}}]",
            "must all have one driver: m1",
        ),
        ("members: [{name: m2, service: rack-7, vcpus: 1}]", "member m2: vcpus is told by the service rack-7"),
        (f"members: [{M1}], restart: often", "node c: true or false is wanted, not 'often'"),
        (f"members: [{M1}], balance_percent: 101", "node c: balance_percent must be a whole number from 0 to 100"),
        ("members: [{name: m2, service: rack-7, fence: off}]", "member m2: fence must be a list of words"),
        (f"members: [{M1[:-1]}, fence: [power]}}]", "member m1: fence is for members of another service"),
        (f"members: [{M1[:-1]}, maintenance: 7}}]", "member m1: true or false is wanted"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said_in_a_sentence(tmp_path: Path, rest: str, says: str) -> None:
    (tmp_path / nodes_file.FILE).write_text(f"- {{name: c, driver: cluster, {rest}}}")
    with pytest.raises(VirtError, match=says):
        nodes_file.read(tmp_path)


def test_nothing_is_promised_twice(tmp_path: Path) -> None:
    (tmp_path / nodes_file.FILE).write_text(
        f"- {{name: c, driver: cluster, members: [{M1}]}}\n- {{{PLAIN.replace('a,', 'm1,')}}}"
    )
    with pytest.raises(VirtError, match="has m1 as a member of c, and as a node"):
        nodes_file.read(tmp_path)
    (tmp_path / nodes_file.FILE).write_text(
        "".join(f"- {{name: {c}, driver: cluster, members: [{M1}]}}\n" for c in "cd")
    )
    with pytest.raises(VirtError, match="has m1 as a member of d, and as a member of c"):
        nodes_file.read(tmp_path)
    (tmp_path / nodes_file.FILE).write_text(f"- {{{PLAIN}, restart: true}}")
    with pytest.raises(VirtError, match="node a: restart is for nodes with `driver: cluster`"):
        nodes_file.read(tmp_path)


@pytest.mark.parametrize("content", ["just text", "[", "name: a", "\x00"])
def test_what_is_no_list_of_nodes_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / nodes_file.FILE).write_text(content)
    with pytest.raises(VirtError, match=nodes_file.FILE):
        nodes_file.read(tmp_path)


def test_a_name_may_be_there_once(tmp_path: Path) -> None:
    (tmp_path / nodes_file.FILE).write_text(f"- {{{PLAIN}}}\n- {{{PLAIN}}}")
    with pytest.raises(VirtError, match=r"names node a twice"):
        nodes_file.read(tmp_path)


def test_the_last_nodes_stay_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    file = NodesFile(tmp_path)
    assert list(file.nodes()) == []
    nodes_file.write(tmp_path, [FULL])
    assert list(file.nodes()) == [FULL]
    (tmp_path / nodes_file.FILE).write_text("- {name: broken")
    assert list(file.nodes()) == [FULL]
    with pytest.raises(VirtError):
        NodesFile(tmp_path).nodes()
    nodes_file.write(tmp_path, nodes_file.demo_nodes())
    assert list(file.nodes()) == nodes_file.demo_nodes()
    (tmp_path / nodes_file.FILE).unlink()
    assert list(file.nodes()) == []
