"""Every metadata record comes back from its bytes, and what is unknown is kept or refused."""

from typing import get_args
from uuid import UUID

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_ids import node_ids

from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.metadata.record_codec import UnknownRecord, decode_entry, encode_entry, encode_record
from penstock.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    Endpoint,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    SupportedFeature,
    TopicRecord,
)
from penstock.quorum.metadata.security_records import ClientQuotaEntity, ClientQuotaRecord

TOPIC = TopicRecord(name="flights", topic_id=TopicId(UUID(int=7)))
# CBOR's own integers, texts and arrays; what a later version may write.
unknown_fields = st.dictionaries(st.integers(50, 60), st.integers() | st.text() | st.lists(st.booleans()), max_size=2)
any_record: st.SearchStrategy[MetadataRecord] = st.one_of(
    [
        st.builds(
            cls,
            unknown_fields=unknown_fields,
            **{
                name: st.lists(st.builds(nested, unknown_fields=unknown_fields), max_size=2).map(tuple)
                for name, nested in (
                    ("endpoints", Endpoint),
                    ("features", SupportedFeature),
                    ("entity", ClientQuotaEntity),
                )
                if name in cls.__struct_fields__
            },
            # A value that is no number is no quota, and not equal to itself.
            **({"value": st.floats(allow_nan=False)} if cls is ClientQuotaRecord else {}),
        )
        for cls in get_args(MetadataRecord)
    ]
)


def entry(*items: object) -> bytes:
    return cbor2.dumps([1, 1_000, list(items)])


@given(st.lists(any_record, max_size=4))
def test_entries_round_trip(records: list[MetadataRecord]) -> None:
    decoded = decode_entry(encode_entry(1_700_000_000_000, [encode_record(record) for record in records]))
    assert decoded.timestamp_ms == 1_700_000_000_000
    assert list(decoded.records) == records


@pytest.mark.thorough
@pytest.mark.parametrize("count", [0, 23, 24, 255, 256, 70_000])
def test_any_number_of_records_in_an_entry(count: int) -> None:
    assert decode_entry(encode_entry(0, [encode_record(TOPIC)] * count)).records == (TOPIC,) * count


def test_unchanged_is_told_from_empty() -> None:
    change = PartitionChangeRecord(topic_id=TopicId(UUID(int=1)), partition_id=0, isr=(), elr=None)
    registration = BrokerRegistrationChangeRecord(
        broker_id=NodeId(1), broker_epoch=BrokerEpoch(1), is_fenced=False, log_dirs=()
    )
    removed = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None)
    decoded = decode_entry(encode_entry(0, [encode_record(record) for record in (change, registration, removed)]))
    assert decoded.records == (change, registration, removed)


def test_a_partition_is_small() -> None:
    partition = PartitionRecord(
        topic_id=TopicId(UUID(int=2**127)),
        partition_id=9_999,
        replicas=node_ids(1, 2, 3),
        isr=node_ids(1, 2, 3),
        leader=NodeId(1),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=(UUID(int=2**127),) * 3,
    )
    assert len(encode_record(partition)) < 120


def test_unknown_fields_are_kept() -> None:
    written = cbor2.dumps([2, 0, {0: "t", 1: UUID(int=7).bytes, 99: {"later": [1]}}])
    (record,) = decode_entry(b"\x83\x01\x00\x81" + written).records
    assert record == TopicRecord(name="t", topic_id=TopicId(UUID(int=7)), unknown_fields={99: {"later": [1]}})
    assert encode_record(record) == written


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ([4711, 0, {}], "a record of type 4711, which this version of penstock does not know"),
        ([2, 9, {}], "a TopicRecord of version 9, this version of penstock knows up to 0"),
    ],
)
def test_unknown_records_are_refused(item: object, sentence: str) -> None:
    with pytest.raises(UnknownRecord, match=sentence):
        decode_entry(entry(item))


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff",
        cbor2.dumps({"no": "entry"}),
        entry("no record"),
        entry([2, 0, {}]),
        entry([2, 0, {0: "t"}]),
        entry([0, 0, {0: 1, 1: bytes(16), 2: 1, 3: "no endpoints"}]),
        entry([2, 0, {0: "t", 1: bytes(15)}]),
        entry([2, 0, {0: "t", 1: 7}]),
        entry([2, 0, {0: "t", 1: "sixteen letters."}]),
        # Lists that hold themselves: in place of a number, and in a field that a later version may have.
        bytes.fromhex("83 01 1b0000018bcfe56800 81 83 0f 00 a3 00 01 01 09 02 d81c 81 d81d00"),
        bytes.fromhex("83 01 1b0000018bcfe56800 81 83 0f 00 a4 00 01 01 09 02 07 1863 d81c 81 d81d00"),
        # A tag that holds itself, where ids are expected: it has no hash.
        bytes.fromhex("83 01 1b0000018bcfe56800 81 83 03 00 a1 07 82 d81cd6d81d00 40"),
    ],
)
def test_damage_is_refused(damaged: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_entry(damaged)
