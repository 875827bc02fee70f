"""What a local cluster refuses, and how it is found again."""

import json
import socket
from pathlib import Path

import pytest

from penstock.local.cluster import LocalCluster
from penstock.local.cluster_record import NodeRecord, read_record, write_record
from penstock.local.errors import ClusterError, PortInUseError, UnreadableRecordError


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
