"""What a local cluster refuses, and how it is found again."""

import json
import os
import socket
from pathlib import Path
from random import Random

import pytest

from penstock.local.cluster import LocalCluster
from penstock.local.cluster_record import NodeRecord, read_record, write_record
from penstock.local.errors import ClusterError, PortInUseError, UnreadableRecordError
from penstock.local.quorum_settings import check_voters, quorum_settings


@pytest.mark.parametrize("key", ["process.roles", "controller.quorum.voters", "cluster.secret"])
def test_how_several_nodes_are_tied_together_cannot_be_set(tmp_path: Path, key: str) -> None:
    with pytest.raises(ClusterError, match=key):
        LocalCluster(tmp_path, node_count=3, properties={key: "1"})


@pytest.mark.parametrize("key", ["node.id", "listeners", "log.dir", "log.dirs"])
def test_keys_that_the_cluster_decides_cannot_be_set(tmp_path: Path, key: str) -> None:
    with pytest.raises(ClusterError, match=key):
        LocalCluster(tmp_path, properties={key: "1"})


def test_nothing_is_written_before_the_start(tmp_path: Path) -> None:
    LocalCluster(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert LocalCluster.attach(tmp_path / "new") is None


def test_port_in_use_is_found_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortInUseError, match=str(port)):
            LocalCluster(tmp_path, first_port=port).start()
    assert not (tmp_path / "cluster.json").exists()


def test_nodes_are_added_only_where_it_is_known_how_they_join(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no node can be added"):
        LocalCluster(tmp_path).add_node()
    write_record(tmp_path, (NodeRecord(id=1, port=9092, pid=None, started=None),))
    found = LocalCluster.attach(tmp_path)
    assert found is not None
    with pytest.raises(ClusterError, match="no node can be added"):
        found.add_node()


def test_brokers_are_forgotten_and_controllers_are_not(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, node_count=4)
    with pytest.raises(ClusterError, match="node 3 is a controller"):
        cluster.forget_node(3)
    cluster.forget_node(4)
    assert cluster.nodes.keys() == {1, 2, 3}
    assert read_record(tmp_path) is not None


def with_metadata(folder: Path, node_count: int) -> None:
    """As that many nodes leave it behind."""
    cluster = LocalCluster(folder, node_count=node_count)
    for node in cluster.nodes.values():
        node.write_properties(quorum_settings(tuple(cluster.nodes.values()), Random(1)).get(node.id, {}))
        node.data.mkdir()
        (node.data / "meta.properties").write_text("version=1\n")


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        (
            3,
            1,
            "keeps its metadata on nodes 1, 2 and 3, and with 1 node .* on node 1: start it with 3 nodes or more",
        ),
        (1, 3, "keeps its metadata on node 1, and with 3 nodes .* start it with 1 node, or"),
        (3, 2, "start it with 3 nodes or more"),
        (2, 5, "start it with 2 nodes, or"),
    ],
)
def test_other_controllers_than_those_that_have_the_metadata_are_refused(
    tmp_path: Path, before: int, now: int, sentence: str
) -> None:
    with_metadata(tmp_path, before)
    was = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ClusterError, match=sentence):
        LocalCluster(tmp_path, node_count=now).start()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == was


@pytest.mark.parametrize(("before", "now"), [(1, 1), (3, 3), (3, 5), (5, 3)])
def test_the_same_controllers_are_no_matter_how_many_brokers_there_are(tmp_path: Path, before: int, now: int) -> None:
    with_metadata(tmp_path, before)
    nodes = tuple(LocalCluster(tmp_path, node_count=now).nodes.values())
    settings = quorum_settings(nodes, Random(2))
    check_voters(nodes, lambda node: settings.get(node.id, {}))


def test_what_would_not_be_one_folder_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="comma"):
        LocalCluster(tmp_path / "a,b")
    with pytest.raises(ClusterError, match="no text"):
        LocalCluster(tmp_path / os.fsdecode(b"\xff"))


def test_ports_end(tmp_path: Path) -> None:
    LocalCluster(tmp_path, node_count=2, first_port=65_534)
    with pytest.raises(ClusterError, match="ports above 65535"):
        LocalCluster(tmp_path, node_count=3, first_port=65_534)


def test_programs_that_change_single_nodes_keep_what_others_wrote(tmp_path: Path) -> None:
    write_record(tmp_path, tuple(NodeRecord(id=one, port=9091 + one, pid=None, started=None) for one in (1, 2)))
    first, second = LocalCluster.attach(tmp_path), LocalCluster.attach(tmp_path)
    assert first is not None
    assert second is not None
    first.kill_node(1)
    second.kill_node(2)
    assert [record.is_down for record in read_record(tmp_path) or ()] == [True, True]


def test_record_round_trips(tmp_path: Path) -> None:
    nodes = (
        NodeRecord(id=1, port=9092, pid=17, started="boot:42"),
        NodeRecord(id=2, port=9093, pid=None, started=None),
    )
    write_record(tmp_path, nodes)
    assert read_record(tmp_path) == nodes
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "nodes": [{"id": 1}]}'])
def test_record_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(UnreadableRecordError, match=str(tmp_path)):
        read_record(tmp_path)


def test_record_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(UnreadableRecordError, match="format 2"):
        LocalCluster.attach(tmp_path)


def test_attached_cluster_knows_that_its_processes_are_gone(tmp_path: Path) -> None:
    # Pid 1 is always there, and never started then.
    write_record(tmp_path, (NodeRecord(id=1, port=9092, pid=1, started="boot:0"),))
    cluster = LocalCluster.attach(tmp_path)
    assert cluster is not None
    assert not cluster.is_running
    cluster.stop()
    assert cluster.description() == {
        "bootstrap": "127.0.0.1:9092",
        "nodes": [{"id": 1, "pid": None, "port": 9092, "admin": None, "data": str(tmp_path.resolve() / "node-1")}],
    }
