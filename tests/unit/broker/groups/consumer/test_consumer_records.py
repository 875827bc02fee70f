"""Records of consumer groups, byte for byte as the classes of Apache Kafka 4.3.1 write them."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.broker.coordination.record_format import version_of
from penstock.broker.groups.classic.member import MemberProtocol
from penstock.broker.groups.consumer.changes import (
    CONSUMER_GROUP_KEYS,
    CurrentChange,
    GroupChange,
    GroupEpochChange,
    PartitionMetadataChange,
    RegularExpressionChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    from_record,
    to_record,
)
from penstock.broker.groups.consumer.member import CurrentAssignment, MemberState
from penstock.broker.groups.consumer.records import (
    ClassicMembership,
    GroupEpochValue,
    RegularExpressionValue,
    Subscription,
    TargetEpochValue,
)
from penstock.protocol.errors import CorruptData

TOPIC = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
GOLDEN: list[tuple[GroupChange, str, str]] = [
    (GroupEpochChange("g", GroupEpochValue(7, -5)), "0003000167", "000000000007010008fffffffffffffffb"),
    (GroupEpochChange("g", GroupEpochValue(7, 0)), "0003000167", "00000000000700"),
    (
        SubscriptionChange("g", "m", Subscription("i", None, "c", "/h", ("a", "b"), "r.*", 300_000, "uniform")),
        "000500016700016d",
        "00000269000263032f68030261026204722e2a000493e008756e69666f726d00",
    ),
    (
        SubscriptionChange(
            "g",
            "m",
            Subscription(
                None,
                "rack",
                "c",
                "/h",
                ("a",),
                "",
                60_000,
                None,
                ClassicMembership(45_000, (MemberProtocol("range", b"\1\2\3"),)),
            ),
        ),
        "000500016700016d",
        "000000057261636b0263032f68020261010000ea6000010012010000afc8020672616e6765040102030000",
    ),
    (
        TargetEpochChange("g", TargetEpochValue(8, 1_234_567_890_123)),
        "0006000167",
        "0000000000080100080000011f71fb04cb",
    ),
    (
        TargetChange("g", "m", {TOPIC: frozenset({0, 3})}),
        "000700016700016d",
        "0000020102030405060708090a0b0c0d0e0f100300000000000000030000",
    ),
    (
        CurrentChange(
            "g",
            "m",
            CurrentAssignment(5, 4, MemberState.UNREVOKED_PARTITIONS, {TOPIC: {0: 2, 1: 5}}, {TOPIC: {2: 3}}),
        ),
        "000800016700016d",
        "0000000000050000000402020102030405060708090a0b0c0d0e0f10030000000000000001010009030000000200000005"
        "020102030405060708090a0b0c0d0e0f100200000002010005020000000300",
    ),
    (
        RegularExpressionChange("g", "r.*", RegularExpressionValue(("a", "b"), 9, 1_000)),
        "00100001670003722e2a",
        "00000302610262000000000000000900000000000003e800",
    ),
]


@pytest.mark.parametrize(("change", "key", "value"), GOLDEN)
def test_a_change_is_written_and_read_as_apache_kafka_does(change: GroupChange, key: str, value: str) -> None:
    record = to_record(change)
    assert record.value is not None
    assert (record.key.hex(), record.value.hex()) == (key, value)
    assert from_record(version_of(record.key), record.key, record.value) == change


def test_a_removal_has_no_value() -> None:
    removals: list[GroupChange] = [
        GroupEpochChange("g", None),
        PartitionMetadataChange("g", is_present=False),
        SubscriptionChange("g", "m", None),
        TargetEpochChange("g", None),
        TargetChange("g", "m", None),
        CurrentChange("g", "m", None),
        RegularExpressionChange("g", "r.*", None),
    ]
    records = [to_record(removal) for removal in removals]
    assert [record.value for record in records] == [None] * len(removals)
    assert {version_of(record.key) for record in records} == CONSUMER_GROUP_KEYS
    assert [from_record(version_of(record.key), record.key, None) for record in records] == removals
    assert all(removal.is_removal for removal in removals)


def test_what_brokers_before_4_3_wrote_is_understood() -> None:
    """Without assignment epochs, a member has had its partitions since its own epoch."""
    value = "0000000000050000000401020102030405060708090a0b0c0d0e0f10030000000000000001000100"
    change = from_record(8, bytes.fromhex("000800016700016d"), bytes.fromhex(value))
    assert change == CurrentChange("g", "m", CurrentAssignment(5, 4, MemberState.STABLE, {TOPIC: {0: 5, 1: 5}}))
    partition_metadata = from_record(4, bytes.fromhex("0004000167"), b"\0\0whatever")
    assert partition_metadata == PartitionMetadataChange("g", is_present=True)


def test_a_state_of_the_future_is_one_that_is_not_known() -> None:
    value = bytes.fromhex("00000000000500000004") + b"\x09\1\1\0"
    change = from_record(8, bytes.fromhex("000800016700016d"), value)
    assert change == CurrentChange("g", "m", CurrentAssignment(5, 4, MemberState.UNKNOWN))


@pytest.mark.parametrize(("change", "key", "value"), GOLDEN)
def test_a_record_that_was_cut_is_corrupt(change: GroupChange, key: str, value: str) -> None:
    data = bytes.fromhex(value)
    for end in range(len(data)):
        with pytest.raises(CorruptData):
            from_record(version_of(bytes.fromhex(key)), bytes.fromhex(key), data[:end])
