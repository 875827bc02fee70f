"""Questions about records, offsets and metadata of topics."""

from __future__ import annotations

from typing import Any

from differential.permissions.acl_states import Kind, Operation
from differential.permissions.probes import FRIEND, Cell, probe
from differential.record_batches import batch

from penstock.protocol.apis import ApiKey

LATEST = -1
TIMEOUT_MS = 10_000
ABSENT_ID = "<absent>"

TOPIC_READ = {Kind.TOPIC: (Operation.READ,)}
TOPIC_WRITE = {Kind.TOPIC: (Operation.WRITE,)}
TOPIC_DESCRIBE = {Kind.TOPIC: (Operation.DESCRIBE,)}
TOPIC_DELETE = {Kind.TOPIC: (Operation.DELETE,)}
CREATING: dict[Kind, tuple[Operation, ...]] = {Kind.TOPIC: (Operation.DESCRIBE,), Kind.CLUSTER: ()}


def partition(**fields: Any) -> list[dict[str, Any]]:
    return [{"partition_index": 0, "partition": 0, "index": 0, **fields}]


def produce(cell: Cell, *names: str, transactional_id: str | None = None) -> dict[str, Any]:
    records = (
        batch(cell.base_ms)
        if transactional_id is None
        else batch(cell.base_ms, producer_id=1_000_000, producer_epoch=0, base_sequence=0, is_transactional=True)
    )
    topics = [
        {"name": name, "topic_id": cell.ids[name], "partition_data": [{"index": 0, "records": records}]}
        for name in names
    ]
    return {"transactional_id": transactional_id, "acks": -1, "timeout": TIMEOUT_MS, "topic_data": topics}


def fetch(cell: Cell, *names: str, replica_id: int = -1) -> dict[str, Any]:
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000, "current_leader_epoch": -1}
    topics = [{"topic": name, "topic_id": cell.ids[name], "partitions": [asked]} for name in names]
    return {
        "replica_id": replica_id,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 10_000,
        "session_epoch": -1,
        "topics": topics,
        **({"replica_state": {"replica_id": replica_id, "replica_epoch": -1}} if replica_id >= 0 else {}),
    }


def list_offsets(*names: str) -> dict[str, Any]:
    asked = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": -1}
    return {
        "replica_id": -1,
        "topics": [{"name": name, "partitions": [asked]} for name in names],
        "timeout": TIMEOUT_MS,
    }


def metadata(*names: str, creates: bool = False) -> dict[str, Any]:
    return {
        "topics": [{"name": name, "topic_id": None} for name in names],
        "allow_auto_topic_creation": creates,
        "include_topic_authorized_operations": True,
    }


for version in (12, 13):
    probe(
        f"Produce v{version}",
        ApiKey.PRODUCE,
        TOPIC_WRITE,
        lambda cell: produce(cell, cell.topic, FRIEND),
        version=version,
        makes="topic",
    )
probe("Produce v12 absent", ApiKey.PRODUCE, TOPIC_WRITE, lambda cell: produce(cell, cell.topic), version=12)
probe("Produce v13 unknown id", ApiKey.PRODUCE, TOPIC_WRITE, lambda cell: produce(cell, cell.topic), version=13)
probe(
    "Produce transactional",
    ApiKey.PRODUCE,
    {Kind.TRANSACTIONAL_ID: (Operation.WRITE,), **TOPIC_WRITE},
    lambda cell: produce(cell, cell.topic, FRIEND, transactional_id=cell.transactional_id),
    makes="topic",
)
for version in (12, 13):
    probe(
        f"Fetch v{version}",
        ApiKey.FETCH,
        TOPIC_READ,
        lambda cell: fetch(cell, cell.topic, FRIEND),
        version=version,
        makes="topic",
    )
probe("Fetch v12 absent", ApiKey.FETCH, TOPIC_READ, lambda cell: fetch(cell, cell.topic), version=12)
probe("Fetch unknown id", ApiKey.FETCH, TOPIC_READ, lambda cell: fetch(cell, cell.topic))
probe(
    "Fetch as a replica",
    ApiKey.FETCH,
    {Kind.CLUSTER: (), Kind.TOPIC: ()},
    lambda cell: fetch(cell, cell.topic, replica_id=99),
    makes="topic",
)
probe("ListOffsets", ApiKey.LIST_OFFSETS, TOPIC_DESCRIBE, lambda cell: list_offsets(cell.topic, FRIEND), makes="topic")
probe("ListOffsets absent", ApiKey.LIST_OFFSETS, TOPIC_DESCRIBE, lambda cell: list_offsets(cell.topic))
probe(
    "OffsetForLeaderEpoch",
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    {Kind.TOPIC: (), Kind.CLUSTER: ()},
    lambda cell: {
        "replica_id": -1,
        "topics": [
            {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
            for name in (cell.topic, FRIEND)
        ],
    },
    makes="topic",
)
probe(
    "DeleteRecords",
    ApiKey.DELETE_RECORDS,
    TOPIC_DELETE,
    lambda cell: {
        "topics": [{"name": name, "partitions": partition(offset=0)} for name in (cell.topic, FRIEND)],
        "timeout": TIMEOUT_MS,
    },
    makes="topic",
)
probe(
    "DeleteRecords absent",
    ApiKey.DELETE_RECORDS,
    TOPIC_DELETE,
    lambda cell: {"topics": [{"name": cell.topic, "partitions": partition(offset=0)}], "timeout": TIMEOUT_MS},
)

for version in (1, 9, 10, 13):
    probe(
        f"Metadata v{version}",
        ApiKey.METADATA,
        TOPIC_DESCRIBE,
        lambda cell: metadata(cell.topic, FRIEND),
        version=version,
        makes="topic",
    )
probe(
    "Metadata by id",
    ApiKey.METADATA,
    TOPIC_DESCRIBE,
    lambda cell: {
        "topics": [{"topic_id": cell.ids[name], "name": None} for name in (cell.topic, FRIEND)],
        "include_topic_authorized_operations": True,
    },
    makes="topic",
)
for version in (1, 13):
    probe(
        f"Metadata of all v{version}",
        ApiKey.METADATA,
        TOPIC_DESCRIBE,
        lambda _: {"topics": None, "include_topic_authorized_operations": True},
        version=version,
        makes="topic",
    )
probe(
    "Metadata of the cluster",
    ApiKey.METADATA,
    {Kind.CLUSTER: ()},
    lambda _: {"topics": [], "include_cluster_authorized_operations": True},
    version=10,
)
probe("Metadata absent", ApiKey.METADATA, TOPIC_DESCRIBE, lambda cell: metadata(cell.topic, f"{FRIEND}-absent"))
probe("Metadata creates", ApiKey.METADATA, CREATING, lambda cell: metadata(cell.topic, creates=True), is_lasting=True)
probe(
    "DescribeTopicPartitions",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    TOPIC_DESCRIBE,
    lambda cell: {"topics": [{"name": cell.topic}, {"name": FRIEND}], "response_partition_limit": 100, "cursor": None},
    makes="topic",
)
probe(
    "DescribeTopicPartitions absent",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    TOPIC_DESCRIBE,
    lambda cell: {"topics": [{"name": cell.topic}], "response_partition_limit": 100, "cursor": None},
)
probe(
    "DescribeTopicPartitions of all",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    TOPIC_DESCRIBE,
    lambda _: {"topics": [], "response_partition_limit": 2_000, "cursor": None},
    makes="topic",
)
probe(
    "DescribeProducers",
    ApiKey.DESCRIBE_PRODUCERS,
    TOPIC_READ,
    lambda cell: {"topics": [{"name": name, "partition_indexes": [0]} for name in (cell.topic, FRIEND)]},
    makes="topic",
)
