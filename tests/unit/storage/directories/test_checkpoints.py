"""The small files of a log directory, as Apache Kafka 4.3.1 writes them."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.errors import ConfigError, CorruptData
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.storage.directories.rules.checkpoints import decode_offsets, encode_offsets
from penstock.storage.directories.rules.clean_shutdown import decode_clean_shutdown, encode_clean_shutdown
from penstock.storage.directories.rules.folder_names import (
    FolderKind,
    folder_name,
    moved_folder_name,
    parse_folder_name,
)
from penstock.storage.directories.rules.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    is_usable_id,
)

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
OFFSETS = st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), max_size=5)


@given(OFFSETS)
def test_offset_checkpoint_round_trip(offsets: dict[tuple[str, int], int]) -> None:
    assert decode_offsets(encode_offsets(offsets.items()), "file") == offsets


def test_offset_checkpoint_of_kafka_is_read_and_written_alike() -> None:
    written = b"0\n2\n__consumer_offsets 42 0\nb2-a 0 3\n"
    offsets = decode_offsets(written, "file")
    assert offsets == {("__consumer_offsets", 42): 0, ("b2-a", 0): 3}
    assert encode_offsets(offsets.items()) == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0",
        b"1\n0\n",
        b"0\nx\n",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1",
        b"0\n1\n\xff 0 1\n",
    ],
)
def test_torn_or_unknown_offset_checkpoint_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptData, match="file"):
        decode_offsets(data, "file")


def test_meta_properties_of_kafka_are_read() -> None:
    written = (
        b"#\n#Sat Nov 21 11:56:32 UTC 2026\nnode.id=0\ndirectory.id=I5Tx8WGhDP6UXWu55eo2aQ\n"
        b"version=1\ncluster.id=YW5jaG9yLWthZmthLTAwMQ\n"
    )
    properties = decode_meta_properties(written, "file")
    assert properties == MetaProperties(
        cluster_id="YW5jaG9yLWthZmthLTAwMQ",
        node_id=NodeId(0),
        directory_id=UUID("2394f1f1-61a1-0cfe-945d-6bb9e5ea3669"),
    )
    assert decode_meta_properties(encode_meta_properties(properties), "file") == properties


def test_meta_properties_without_a_directory_id_are_accepted() -> None:
    properties = MetaProperties(cluster_id="c", node_id=NodeId(3), directory_id=None)
    assert decode_meta_properties(encode_meta_properties(properties), "file") == properties


@pytest.mark.parametrize(
    "data", [b"", b"version=0\nbroker.id=1\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=a\nnode.id=x"]
)
def test_unusable_meta_properties_are_told_in_a_sentence(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"file .*\."):
        decode_meta_properties(data, "file")


def test_ids_that_mean_something_else_are_not_drawn() -> None:
    assert not is_usable_id(UUID(int=0))
    assert not is_usable_id(UUID(int=99))
    assert not is_usable_id(UUID("f8000000-0000-4000-8000-000000000000")), "begins with a dash"
    assert is_usable_id(UUID("2394f1f1-61a1-0cfe-945d-6bb9e5ea3669"))


def test_mark_of_a_clean_stop_carries_the_broker_epoch() -> None:
    assert encode_clean_shutdown(BrokerEpoch(7)) == b'{"version":0,"brokerEpoch":7}'
    assert decode_clean_shutdown(encode_clean_shutdown(BrokerEpoch(7))) == 7
    for data in (b"", b"{", b"[]", b"{}", b'{"brokerEpoch":"7"}', b"\xff"):
        assert decode_clean_shutdown(data) is None


@given(TOPICS, st.integers(0, 2**31 - 1), st.sampled_from(FolderKind))
def test_folder_names_are_parsed_back(topic: str, partition: int, kind: FolderKind) -> None:
    if kind is FolderKind.LOG:
        name = folder_name(topic, partition)
    else:
        name = moved_folder_name(topic[:200], partition, kind, UUID(int=5))
        topic = topic[:200]
    folder = parse_folder_name(name)
    assert folder is not None
    assert (folder.topic, folder.partition, folder.kind) == (topic, partition, kind)


@pytest.mark.parametrize("name", ["", "notes", "-1", "a-", "a-b", "a-1.x-gone", "a-1-delete", "lost+found"])
def test_other_folders_are_no_partitions(name: str) -> None:
    assert parse_folder_name(name) is None
