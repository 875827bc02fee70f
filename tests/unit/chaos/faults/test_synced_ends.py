"""What a loss of power leaves of files that a node wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.chaos.faults.faulty_files import FaultyFiles
from penstock.chaos.faults.node_faults import NodeFaults, OrderReader, synced_path
from penstock.chaos.faults.synced_ends import SyncedEnds, read_ends
from penstock.local.local_node import LocalNode
from penstock.storage.disk.files import DiskFiles


@pytest.fixture
def node(tmp_path: Path) -> LocalNode:
    node = LocalNode(id=1, port=1, data=tmp_path / "node-1", environment={})
    node.data.mkdir()
    return node


@pytest.fixture
def faults(node: LocalNode) -> NodeFaults:
    return NodeFaults(node)


@pytest.fixture
def files(tmp_path: Path, faults: NodeFaults) -> FaultyFiles:
    assert faults.fired() == {}
    orders = tmp_path / "node-1.faults.json"
    return FaultyFiles(DiskFiles(), OrderReader(str(orders)), SyncedEnds(synced_path(orders)))


def test_what_was_appended_and_not_synced_is_dropped(node: LocalNode, faults: NodeFaults, files: FaultyFiles) -> None:
    kept, dropped = (files.open(f"{node.data}/{name}", create=True) for name in ("kept", "dropped"))
    kept.append([b"synced"])
    kept.sync()
    kept.append([b" and not"])
    dropped.append([b"never"])
    assert faults.drop_unsynced() == {Path(kept.path): len(" and not"), Path(dropped.path): len("never")}
    assert (node.data / "kept").read_bytes() == b"synced"
    assert (node.data / "dropped").read_bytes() == b""


def test_what_is_written_behind_a_cut_is_not_synced(node: LocalNode, faults: NodeFaults, files: FaultyFiles) -> None:
    file = files.open(f"{node.data}/log", create=True)
    file.append([b"0123456789"])
    file.sync()
    file.truncate(4)
    file.append([b"abcdef"])
    assert faults.drop_unsynced() == {Path(file.path): 6}
    assert (node.data / "log").read_bytes() == b"0123"


def test_files_written_in_one_step_are_kept(node: LocalNode, faults: NodeFaults, files: FaultyFiles) -> None:
    files.write_atomically(f"{node.data}/checkpoint", b"1")
    files.write_atomically(f"{node.data}/checkpoint", b"1234")
    assert faults.drop_unsynced() == {}
    assert (node.data / "checkpoint").read_bytes() == b"1234"


def test_what_was_synced_stays_so_in_a_folder_that_is_renamed(
    node: LocalNode, faults: NodeFaults, files: FaultyFiles
) -> None:
    files.make_directories(f"{node.data}/topic-0")
    file = files.open(f"{node.data}/topic-0/log", create=True)
    file.append([b"synced"])
    file.sync()
    files.rename(f"{node.data}/topic-0", f"{node.data}/topic-0-stray")
    file.append([b" and not"])
    assert faults.drop_unsynced() == {node.data / "topic-0-stray" / "log": len(" and not")}
    assert (node.data / "topic-0-stray" / "log").read_bytes() == b"synced"


def test_a_removed_file_says_nothing_of_a_new_one(node: LocalNode, faults: NodeFaults, files: FaultyFiles) -> None:
    for content in (b"old and synced", b"new"):
        file = files.open(f"{node.data}/log", create=True)
        file.append([content])
        if content != b"new":
            file.sync()
            files.remove(file.path)
    assert faults.drop_unsynced() == {node.data / "log": len("new")}


def test_half_a_line_does_not_count() -> None:
    assert read_ends("synced 5 /a\nsynced 17 /b") == {"/a": 5}
