"""Manifests add up to the state of a table, bounded in number, and damage to them is found."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.tables.manifest import (
    FORMAT_VERSION,
    FULL_EVERY,
    AddedFile,
    DataFile,
    Manifest,
    ManifestError,
    TableState,
    decoded,
    deletable_versions,
    encoded,
    first_version_needed,
    following,
    manifest_name,
    version_of,
    with_files_where_due,
)


def data_file(path: str) -> DataFile:
    return DataFile(path=path, size_bytes=10, row_count=3)


def manifest(version: int, added: list[str], removed: list[str]) -> Manifest:
    return Manifest(
        version=version,
        kind="append",
        writer="query/0",
        positions={"a": {0: version}},
        schema="{}",
        partition_by={"event_date": "date"},
        added=tuple(AddedFile(file=data_file(path), staged=f"staged/{path}") for path in added),
        removed=tuple(removed),
    )


def test_files_are_added_and_removed_in_order() -> None:
    state = following(TableState(), manifest(1, ["d=1/a", "d=1/b"], []))
    state = following(state, manifest(2, ["d=1/c"], ["d=1/a", "d=1/b"]))
    assert list(state.files) == ["d=1/c"]
    assert state.row_count == 3
    assert state.positions == {"a": {0: 2}}
    assert state.last is not None
    assert state.last.version == 2


def test_ids_of_topics_go_with_the_positions_and_version_0_1_has_none() -> None:
    noted = msgspec.structs.replace(manifest(1, ["d=1/a"], []), topic_ids={"a": "a1"})
    assert following(TableState(), decoded(encoded(noted), noted.name)).topic_ids == {"a": "a1"}
    before = msgspec.json.decode(encoded(noted))
    del before["topic_ids"]
    assert following(TableState(), decoded(msgspec.json.encode(before), noted.name)).topic_ids == {}


def test_a_version_that_is_missing_is_found() -> None:
    with pytest.raises(ManifestError, match="manifest 2 does not follow version 0"):
        following(TableState(), manifest(2, ["d=1/a"], []))


def test_the_removal_of_a_file_that_the_table_does_not_have_is_found() -> None:
    with pytest.raises(ManifestError, match="removes d=1/x"):
        following(TableState(), manifest(1, [], ["d=1/x"]))


def test_a_table_of_a_later_release_is_refused() -> None:
    later = msgspec.structs.replace(manifest(1, [], []), format_version=FORMAT_VERSION + 1)
    with pytest.raises(ManifestError, match="by a later release"):
        following(TableState(), later)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3 * FULL_EVERY))
def test_a_reader_of_the_last_full_manifest_and_those_after_it_sees_the_same_table(
    commits: list[tuple[int, int]],
) -> None:
    state, written = TableState(), {}
    for version, (added, removed) in enumerate(commits, 1):
        names = [f"d={version}/{number}" for number in range(added)]
        one = with_files_where_due(state, manifest(version, names, list(state.files)[:removed]))
        state = following(state, one)
        written[version] = encoded(one)
    for version in deletable_versions(list(written), state.version):
        del written[version]
    assert len(written) <= 2 * FULL_EVERY
    read = TableState()
    for version in range(first_version_needed(state.version), state.version + 1):
        read = following(read, decoded(written[version], manifest_name(version)))
    assert read == state


def test_names_of_manifests_sort_by_version_and_other_names_are_none() -> None:
    assert [version_of(manifest_name(version)) for version in (1, 99, 100)] == [1, 99, 100]
    assert manifest_name(99) < manifest_name(100)
    for name in ("1.json", ".00000000000000000001.json.crc", f"{'x' * 20}.json", "00000000000000000001.tmp"):
        assert version_of(name) is None


def test_a_damaged_manifest_is_named() -> None:
    name = manifest_name(1)
    whole = encoded(manifest(1, ["d=1/a"], []))
    with pytest.raises(ManifestError, match=name):
        decoded(whole[:-1], name)
    with pytest.raises(ManifestError, match="says that it is version 1"):
        decoded(whole, manifest_name(2))
    assert decoded(whole, name) == manifest(1, ["d=1/a"], [])
