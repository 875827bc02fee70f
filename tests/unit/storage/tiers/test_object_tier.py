"""The store behind a URL, with a folder in place of a network; the tests' own store keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from errno import EIO
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from memory_tier import MemoryTier

from penstock.protocol.errors import ConfigError
from penstock.storage.disk.disk_file import DiskFile
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.rules.disk_errors import failed_sync
from penstock.storage.tiers import object_tier
from penstock.storage.tiers.object_tier import open_tier
from penstock.storage.tiers.rules.tier_store import MissingObjectError, TierError, TierStore

KEY = "topic/id/0/00000000000000000000-segment.log"


@pytest.fixture(params=["file", "memory"])
def tier(request: pytest.FixtureRequest, tmp_path: Path) -> TierStore:
    return MemoryTier() if request.param == "memory" else open_tier(f"file://{tmp_path}/a%20tier")


@pytest.mark.parametrize("part_bytes", [1, 3, 5, 100])
def test_an_object_is_made_of_parts_and_read_in_ranges(
    part_bytes: int, tier: TierStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_tier, "_PART_BYTES", part_bytes)
    parts: list[bytes | memoryview] = [b"ab", memoryview(b"cd"), b"e"]
    tier.put(KEY, iter(parts))
    assert tier.get_range(KEY, 0, 5) == b"abcde"
    assert tier.get_range(KEY, 1, 3) == b"bcd"
    assert tier.get_range(KEY, 3, 100) == b"de"


def test_an_object_can_be_made_again(tier: TierStore) -> None:
    tier.put(KEY, b"first")
    tier.put(KEY, b"second")
    assert tier.get_range(KEY, 0, 100) == b"second"


def test_parts_that_fail_leave_nothing(tier: TierStore) -> None:
    def parts() -> Iterator[bytes]:
        yield b"a"
        raise OSError("the disk")

    with pytest.raises((TierError, OSError)):
        tier.put(KEY, parts())
    with pytest.raises(MissingObjectError):
        tier.get_range(KEY, 0, 1)


@pytest.mark.parametrize("content", [b"abc", [b"a", b"bc"]])
def test_an_object_in_a_folder_is_synced_with_the_names_that_lead_to_it(
    content: bytes | list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []

    def sync_file(file: DiskFile) -> None:
        assert Path(file.path).read_bytes() == b"abc"
        synced.append(Path(file.path))

    def sync_directory(_files: DiskFiles, path: str) -> None:
        synced.append(Path(path))

    monkeypatch.setattr(DiskFile, "sync", sync_file)
    monkeypatch.setattr(DiskFiles, "sync_directory", sync_directory)
    root = tmp_path / "new" / "tier"
    tier = open_tier(f"file://{root}/")
    assert synced == [tmp_path / "new", tmp_path]
    del synced[:]
    tier.put(KEY, content)
    path = root / KEY
    assert synced == [path, *list(path.parents)[: KEY.count("/") + 1]]
    assert synced[-1] == root


def test_an_object_that_could_not_be_synced_was_not_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tier = open_tier(f"file://{tmp_path}")

    def sync(file: DiskFile) -> None:
        raise failed_sync(file.path, OSError(EIO, "the disk"))

    monkeypatch.setattr(DiskFile, "sync", sync)
    with pytest.raises(TierError, match="could not be synced"):
        tier.put(KEY, b"abc")


def test_keys_are_listed_by_their_folder(tier: TierStore) -> None:
    for key in (KEY, "topic/id/1/x.log", "other/x.log"):
        tier.put(key, b"x")
    assert sorted(tier.keys("topic/id/")) == [KEY, "topic/id/1/x.log"]
    assert len(list(tier.keys(""))) == 3


def test_what_is_deleted_is_gone_and_can_be_deleted_again(tier: TierStore) -> None:
    tier.put(KEY, b"x")
    tier.delete([KEY, "nothing"])
    tier.delete([KEY])
    with pytest.raises(MissingObjectError):
        tier.get_range(KEY, 0, 1)
    assert list(tier.keys("")) == []


@pytest.mark.parametrize("url", ["ftp://host/path", "bucket/path", "hdfs://name/path"])
def test_a_url_of_no_store_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(ConfigError, match=r"file:, s3:, gs:, az: or has a store of its own"):
        open_tier(url)


def test_a_store_of_ones_own_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Named(EntryPoint):
        def load(self) -> Callable[[str], TierStore]:
            def make(url: str) -> TierStore:
                made.append(url)
                return MemoryTier()

            return make

    def points(*, group: str, name: str) -> EntryPoints:
        return EntryPoints([Named(name, "", group)] if name == "hdfs" else [])

    monkeypatch.setattr(object_tier, "entry_points", points)
    open_tier("hdfs://name/path").put(KEY, b"x")
    assert made == ["hdfs://name/path"]


def test_without_the_library_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_tier, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"pip install 'penstock-broker\[tiers\]'"):
        open_tier("s3://bucket/path")
