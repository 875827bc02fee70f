"""Who keeps the metadata of a folder does not change."""

from __future__ import annotations

import pytest

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.voter.stored_voters import VOTERS_FILE, keep_voters
from penstock.storage.disk.memory_files import MemoryFiles

FOLDER = "/metadata"
PATH = f"{FOLDER}/{VOTERS_FILE}"


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    return files


def keep(files: MemoryFiles, *voter_ids: int, has_metadata: bool = True) -> None:
    keep_voters(files, FOLDER, tuple(map(NodeId, voter_ids)), has_metadata=has_metadata)


def test_voters_are_noted_durably_and_in_any_order(files: MemoryFiles) -> None:
    keep(files, 3, 1, 2, has_metadata=False)
    files.kill()
    assert files.read(PATH) == b"version=1\nvoters=1,2,3\n"
    keep(files, 2, 3, 1)


@pytest.mark.parametrize("voter_ids", [(1,), (1, 2), (1, 2, 4), (1, 2, 3, 4)])
def test_other_voters_are_refused(files: MemoryFiles, voter_ids: tuple[int, ...]) -> None:
    keep(files, 1, 2, 3)
    with pytest.raises(ConsensusFailed, match=r"kept by nodes 1, 2 and 3, and controller\.quorum\.voters names node"):
        keep(files, *voter_ids)
    keep(files, 1, 2, 3)


def test_a_folder_without_metadata_binds_no_voter(files: MemoryFiles) -> None:
    keep(files, 1, has_metadata=False)
    keep(files, 1, 2, 3, has_metadata=False)
    keep(files, 1, 2, 3)


def test_metadata_of_an_older_release_are_kept_by_those_that_have_them(files: MemoryFiles) -> None:
    keep(files, 1, 2, 3)
    with pytest.raises(ConsensusFailed):
        keep(files, 1)


@pytest.mark.parametrize("data", [b"", b"version=2\nvoters=1\n", b"version=1\n", b"version=1\nvoters=x\n", b"\xff"])
def test_a_file_that_is_none_is_named(files: MemoryFiles, data: bytes) -> None:
    files.write_atomically(PATH, data)
    with pytest.raises(ConsensusFailed, match=f"{PATH} cannot be read"):
        keep(files, 1)
