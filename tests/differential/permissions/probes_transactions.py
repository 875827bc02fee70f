"""Questions to coordinators of transactions, and what brokers ask of each other for them."""

from __future__ import annotations

from typing import Any

from differential.permissions.acl_states import Kind, Operation
from differential.permissions.probes import FRIEND, Cell, probe

from penstock.protocol.apis import ApiKey

WRITES = {Kind.TRANSACTIONAL_ID: (Operation.WRITE,)}
SHOWS = {Kind.TRANSACTIONAL_ID: (Operation.DESCRIBE,)}
ADDS = {Kind.TRANSACTIONAL_ID: (Operation.WRITE,), Kind.TOPIC: (Operation.WRITE,)}
COMMITS = {Kind.TRANSACTIONAL_ID: (Operation.WRITE,), Kind.GROUP: (Operation.READ,), Kind.TOPIC: (Operation.READ,)}
TRANSACTION_MS = 60_000
UNKNOWN_PRODUCER = {"producer_id": 1_000_000, "producer_epoch": 0}


def add(cell: Cell, *names: str) -> dict[str, Any]:
    topics = [{"name": name, "partitions": [0]} for name in names]
    return {
        "v3_and_below_transactional_id": cell.transactional_id,
        "v3_and_below_producer_id": 1_000_000,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": topics,
    }


def init(transactional_id: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "transactional_id": transactional_id,
        "transaction_timeout": TRANSACTION_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        **fields,
    }


def commit(cell: Cell, *names: str) -> dict[str, Any]:
    asked = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    return {
        "transactional_id": cell.transactional_id,
        "group_id": cell.group,
        **UNKNOWN_PRODUCER,
        "generation_id": -1,
        "member_id": "",
        "topics": [{"name": name, "partitions": [asked]} for name in names],
    }


probe(
    "InitProducerId",
    ApiKey.INIT_PRODUCER_ID,
    {Kind.CLUSTER: (), Kind.TOPIC: ()},
    lambda _: init(None),
    is_alone=True,
)
probe("InitProducerId transactional", ApiKey.INIT_PRODUCER_ID, WRITES, lambda cell: init(cell.transactional_id))
for version in (0, 3):
    probe(
        f"FindCoordinator of a transaction v{version}" if version else "FindCoordinator of a transaction",
        ApiKey.FIND_COORDINATOR,
        SHOWS,
        (lambda cell: {"key": cell.transactional_id, "key_type": 1})
        if version
        else (lambda cell: {"key_type": 1, "coordinator_keys": [cell.transactional_id, FRIEND]}),
        version=version or None,
    )
probe(
    "AddPartitionsToTxn v3",
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ADDS,
    lambda cell: add(cell, cell.topic, FRIEND),
    version=3,
    makes="topic",
)
probe(
    "AddPartitionsToTxn v3 absent",
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ADDS,
    lambda cell: add(cell, cell.topic, FRIEND),
    version=3,
)
probe(
    "AddPartitionsToTxn",
    ApiKey.ADD_PARTITIONS_TO_TXN,
    {Kind.CLUSTER: (), Kind.TRANSACTIONAL_ID: (), Kind.TOPIC: ()},
    lambda cell: {
        "transactions": [
            {
                "transactional_id": cell.transactional_id,
                **UNKNOWN_PRODUCER,
                "verify_only": True,
                "topics": [{"name": cell.topic, "partitions": [0]}],
            }
        ]
    },
    makes="topic",
)
probe(
    "AddOffsetsToTxn",
    ApiKey.ADD_OFFSETS_TO_TXN,
    {Kind.TRANSACTIONAL_ID: (Operation.WRITE,), Kind.GROUP: (Operation.READ,)},
    lambda cell: {"transactional_id": cell.transactional_id, **UNKNOWN_PRODUCER, "group_id": cell.group},
)
probe(
    "EndTxn",
    ApiKey.END_TXN,
    WRITES,
    lambda cell: {"transactional_id": cell.transactional_id, **UNKNOWN_PRODUCER, "committed": True},
)
for version in (2, 5):
    probe(
        f"TxnOffsetCommit v{version}",
        ApiKey.TXN_OFFSET_COMMIT,
        COMMITS,
        lambda cell: commit(cell, cell.topic, FRIEND),
        version=version,
        makes="topic",
    )
probe("TxnOffsetCommit absent", ApiKey.TXN_OFFSET_COMMIT, COMMITS, lambda cell: commit(cell, cell.topic))
probe(
    "WriteTxnMarkers",
    ApiKey.WRITE_TXN_MARKERS,
    {Kind.CLUSTER: (), Kind.TOPIC: ()},
    lambda cell: {
        "markers": [
            {
                "producer_id": 1_000_000,
                "producer_epoch": 0,
                "transaction_result": False,
                "topics": [{"name": cell.topic, "partition_indexes": [0]}],
                "coordinator_epoch": 0,
            }
        ]
    },
)
probe(
    "DescribeTransactions",
    ApiKey.DESCRIBE_TRANSACTIONS,
    {Kind.TRANSACTIONAL_ID: (Operation.DESCRIBE,), Kind.TOPIC: (Operation.DESCRIBE,)},
    lambda cell: {"transactional_ids": [cell.transactional_id]},
    makes="topic transaction",
    shows="transaction_state",
)
probe(
    "DescribeTransactions absent",
    ApiKey.DESCRIBE_TRANSACTIONS,
    SHOWS,
    lambda cell: {"transactional_ids": [cell.transactional_id]},
    shows="transaction_state",
)
probe("ListTransactions", ApiKey.LIST_TRANSACTIONS, SHOWS, lambda _: {"duration_filter": -1}, makes="topic transaction")
