"""The real disk, as far as orders let it work: what is hit, what it leaves, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path

import pytest

from penstock.chaos.faults.faulty_files import FaultyFiles
from penstock.chaos.faults.node_faults import NodeFaults, OrderReader, fired_path
from penstock.chaos.faults.orders import DiskFault, full_disk
from penstock.chaos.faults.synced_ends import SyncedEnds
from penstock.local.errors import ClusterError
from penstock.local.local_node import LocalNode
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.rules.disk_errors import ReadError, SyncError


@pytest.fixture
def faults(tmp_path: Path) -> NodeFaults:
    return NodeFaults(LocalNode(id=1, port=1, data=tmp_path / "node-1", environment={}))


@pytest.fixture
def reader(tmp_path: Path, faults: NodeFaults) -> OrderReader:
    return OrderReader(str(tmp_path / "node-1.faults.json"))


@pytest.fixture
def files(tmp_path: Path, reader: OrderReader) -> FaultyFiles:
    return FaultyFiles(DiskFiles(), reader, SyncedEnds(tmp_path / "synced"))


def test_without_orders_it_is_the_disk(tmp_path: Path, files: FaultyFiles) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append((b"abc",))
    file.sync()
    assert files.open(f"{tmp_path}/f") is file
    assert file.read_at(1, 5) == b"bc"
    assert files.read(f"{tmp_path}/f") == b"abc"


def test_order_holds_for_the_next_call_and_ends_with_healing(
    tmp_path: Path, files: FaultyFiles, faults: NodeFaults
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    faults.order(*full_disk())
    with pytest.raises(OSError) as raised:
        file.append((b"abc",))
    assert raised.value.errno == ENOSPC
    with pytest.raises(OSError):
        files.open(f"{tmp_path}/g", create=True)
    assert file.size == 0
    assert not (tmp_path / "g").exists()
    assert faults.fired() == {"write": 1, "create": 1}
    # As it is read while the node writes.
    with fired_path(faults.orders_path).open("a") as fired:
        fired.write("1")
    assert faults.fired() == {"write": 1, "create": 1}
    faults.heal()
    file.append((b"abc",))
    assert file.read_at(0, 3) == b"abc"
    assert not faults.fired()


def test_failed_reads_and_syncs_are_of_their_own_kinds(tmp_path: Path, files: FaultyFiles, faults: NodeFaults) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    faults.order(DiskFault(operation="read", error="EIO"), DiskFault(operation="sync", error="ENOSPC"))
    reads: list[Callable[[], object]] = [
        lambda: file.read_at(0, 1),
        lambda: file.read_at_nowait(0, 1),
        lambda: files.read(file.path),
    ]
    syncs: list[Callable[[], None]] = [
        file.sync,
        lambda: files.sync_directory(str(tmp_path)),
        lambda: files.write_atomically(f"{tmp_path}/x", b""),
    ]
    for read in reads:
        with pytest.raises(ReadError):
            read()
    for sync in syncs:
        with pytest.raises(SyncError) as raised:
            sync()
        assert raised.value.errno == EIO


def test_clock_is_as_far_off_as_ordered(reader: OrderReader, faults: NodeFaults) -> None:
    assert reader.clock_offset_ms() == 0
    faults.order(clock_offset_ms=-3_600_000)
    assert reader.clock_offset_ms() == -3_600_000


def test_node_without_orders_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OrderReader(str(tmp_path / "none"))
    (tmp_path / "bad").write_text("{")
    with pytest.raises(ClusterError):
        OrderReader(str(tmp_path / "bad"))
