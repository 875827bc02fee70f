"""Records of `__transaction_state`: their bytes, which Kafka's message definitions give, and what is read from them."""

from __future__ import annotations

import pytest

from penstock.broker.transactions.transaction import Transaction, TransactionPartition
from penstock.broker.transactions.transaction_records import (
    TRANSACTION_LOG_KEY,
    TRANSACTION_LOG_VALUE,
    key_of,
    record_of,
    transaction_of,
)
from penstock.broker.transactions.transaction_state import STATES, TransactionState
from penstock.protocol.errors import CorruptData

ONGOING = Transaction(
    id="mover",
    producer_id=7,
    previous_producer_id=6,
    producer_epoch=5,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TransactionPartition("t", 1), TransactionPartition("t", 0), TransactionPartition("s", 2)}),
    started_ms=1_000,
    updated_ms=2_000,
    client_version=2,
)
VERSION_0 = bytes.fromhex(
    "0000"
    "0000000000000007"  # producer id
    "0005"  # producer epoch
    "0000ea60"  # timeout
    "01"  # Ongoing
    "00000002"  # topics
    "0001 73 00000001 00000002"
    "0001 74 00000002 00000000 00000001"
    "00000000000007d0"  # last update
    "00000000000003e8"  # start
)
VERSION_1 = bytes.fromhex(
    "0001"
    "0000000000000007"
    "0005"
    "0000ea60"
    "01"
    "03"
    "02 73 02 00000002 00"
    "02 74 03 00000000 00000001 00"
    "00000000000007d0"
    "00000000000003e8"
    "02"  # tagged fields
    "00 08 0000000000000006"  # previous producer id
    "02 02 0002"  # client's version of transactions
)


@pytest.mark.parametrize(("feature_level", "data"), [(0, VERSION_0), (1, VERSION_1), (2, VERSION_1)])
def test_values_are_of_the_version_that_the_feature_brings(feature_level: int, data: bytes) -> None:
    key, value = record_of(ONGOING, feature_level)
    assert key == b"\0\0\0\5mover"
    assert value == data


def test_what_version_0_cannot_say_is_read_as_unknown() -> None:
    read = transaction_of("mover", VERSION_0)
    assert read.partitions == ONGOING.partitions
    assert (read.previous_producer_id, read.next_producer_id, read.client_version) == (-1, -1, 0)
    assert transaction_of("mover", VERSION_1) == ONGOING


def test_an_empty_transaction_has_no_partitions_at_all() -> None:
    empty = Transaction(id="mover", producer_id=7, producer_epoch=0, timeout_ms=1, updated_ms=1)
    value = record_of(empty, 2).value
    assert value is not None
    assert TRANSACTION_LOG_VALUE.read(value).partitions is None
    assert transaction_of("mover", value) == empty


def test_the_next_producer_id_survives() -> None:
    prepared = Transaction(
        id="mover",
        producer_id=7,
        next_producer_id=9,
        producer_epoch=32_767,
        timeout_ms=1,
        state=TransactionState.PREPARE_ABORT,
        started_ms=1,
        updated_ms=1,
        client_version=2,
    )
    value = record_of(prepared, 2).value
    assert value is not None
    assert transaction_of("mover", value) == prepared


def test_states_have_kafkas_numbers() -> None:
    assert [state.value for state in STATES] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


@pytest.mark.parametrize("data", [b"", b"\0\7", VERSION_1[:-1], VERSION_1 + b"\0"])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        transaction_of("mover", data)


def test_a_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CorruptData):
        transaction_of("mover", VERSION_0[:16] + b"\x08" + VERSION_0[17:])


def test_tagged_fields_of_later_versions_are_skipped() -> None:
    # NextProducerEpoch is known, tag 9 is not.
    data = VERSION_1.replace(bytes.fromhex("02000800000000"), bytes.fromhex("04000800000000"))
    data += bytes.fromhex("03 02 0008 09 01 ff")
    assert TRANSACTION_LOG_VALUE.read(data).next_producer_epoch == 8
    assert transaction_of("mover", data) == ONGOING


def test_keys_are_read_back() -> None:
    assert TRANSACTION_LOG_KEY.read(key_of("mover")).transactional_id == "mover"
