"""Questions to coordinators of groups."""

from __future__ import annotations

from typing import Any

from differential.permissions.acl_states import Kind, Operation
from differential.permissions.probes import FRIEND, Cell, probe

from penstock.protocol.apis import ApiKey

GROUP_READ = {Kind.GROUP: (Operation.READ,)}
GROUP_DESCRIBE = {Kind.GROUP: (Operation.DESCRIBE,)}
GROUP_DELETE = {Kind.GROUP: (Operation.DELETE,)}
COMMITS = {Kind.GROUP: (Operation.READ,), Kind.TOPIC: (Operation.READ,)}
FETCHES = {Kind.GROUP: (Operation.DESCRIBE,), Kind.TOPIC: (Operation.DESCRIBE,)}
JOINS = {Kind.GROUP: (Operation.READ,), Kind.TOPIC: (Operation.DESCRIBE,)}
DELETES_OFFSETS = {Kind.GROUP: (Operation.DELETE,), Kind.TOPIC: (Operation.READ,)}
SHOWS_GROUPS: dict[Kind, tuple[Operation, ...]] = {Kind.GROUP: (), Kind.CLUSTER: ()}
UNKNOWN_MEMBER = "an unknown member"
SESSION_MS = 30_000


def commit(cell: Cell, *names: str) -> dict[str, Any]:
    asked = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    topics = [{"name": name, "topic_id": cell.ids[name], "partitions": [asked]} for name in names]
    return {
        "group_id": cell.group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time": -1,
        "topics": topics,
    }


def fetch_one(cell: Cell, *names: str) -> dict[str, Any]:
    return {"group_id": cell.group, "topics": [{"name": name, "partition_indexes": [0]} for name in names]}


def fetch_many(cell: Cell, *names: str) -> dict[str, Any]:
    topics = [{"name": name, "topic_id": cell.ids[name], "partition_indexes": [0]} for name in names]
    groups = [{"group_id": group, "member_epoch": -1, "topics": topics} for group in (cell.group, FRIEND)]
    return {"groups": groups}


def join(cell: Cell) -> dict[str, Any]:
    return {
        "group_id": cell.group,
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1\0\0\0\0\xff\xff\xff\xff"}],
    }


def heartbeat(cell: Cell, member_epoch: int = 0, **subscription: Any) -> dict[str, Any]:
    return {
        "group_id": cell.group,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "member_epoch": member_epoch,
        "rebalance_timeout": SESSION_MS,
        "subscribed_topic_names": None,
        "topic_partitions": [],
        **subscription,
    }


for version in (9, 10):
    probe(
        f"OffsetCommit v{version}",
        ApiKey.OFFSET_COMMIT,
        COMMITS,
        lambda cell: commit(cell, cell.topic, FRIEND),
        version=version,
        makes="topic",
    )
probe("OffsetCommit v9 absent", ApiKey.OFFSET_COMMIT, COMMITS, lambda cell: commit(cell, cell.topic), version=9)
probe("OffsetCommit unknown id", ApiKey.OFFSET_COMMIT, COMMITS, lambda cell: commit(cell, cell.topic))
for version in (1, 7):
    probe(
        f"OffsetFetch v{version}",
        ApiKey.OFFSET_FETCH,
        FETCHES,
        lambda cell: fetch_one(cell, cell.topic, FRIEND),
        version=version,
        makes="topic group",
        shows="committed_offset",
    )
for version in (8, 10):
    probe(
        f"OffsetFetch v{version}",
        ApiKey.OFFSET_FETCH,
        FETCHES,
        lambda cell: fetch_many(cell, cell.topic, FRIEND),
        version=version,
        makes="topic group",
        shows="committed_offset",
    )
probe("OffsetFetch unknown id", ApiKey.OFFSET_FETCH, FETCHES, lambda cell: fetch_many(cell, cell.topic), makes="group")
probe(
    "OffsetFetch v9 absent",
    ApiKey.OFFSET_FETCH,
    FETCHES,
    lambda cell: fetch_many(cell, cell.topic),
    version=9,
    makes="group",
    shows="committed_offset",
)
probe(
    "OffsetFetch of all v7",
    ApiKey.OFFSET_FETCH,
    FETCHES,
    lambda cell: {"group_id": cell.group, "topics": None},
    version=7,
    makes="topic group",
    shows="committed_offset",
)
for version in (9, 10):
    probe(
        f"OffsetFetch of all v{version}",
        ApiKey.OFFSET_FETCH,
        FETCHES,
        lambda cell: {"groups": [{"group_id": cell.group, "member_epoch": -1, "topics": None}]},
        version=version,
        makes="topic group",
        shows="committed_offset",
    )
probe(
    "OffsetDelete",
    ApiKey.OFFSET_DELETE,
    DELETES_OFFSETS,
    lambda cell: {
        "group_id": cell.group,
        "topics": [{"name": name, "partitions": [{"partition_index": 0}]} for name in (cell.topic, FRIEND)],
    },
    makes="topic group",
)
probe(
    "OffsetDelete absent",
    ApiKey.OFFSET_DELETE,
    DELETES_OFFSETS,
    lambda cell: {"group_id": cell.group, "topics": [{"name": cell.topic, "partitions": [{"partition_index": 0}]}]},
    makes="group",
)
for version in (0, 3):
    probe(
        f"FindCoordinator of a group v{version}",
        ApiKey.FIND_COORDINATOR,
        GROUP_DESCRIBE,
        lambda cell: {"key": cell.group, "key_type": 0},
        version=version,
    )
probe(
    "FindCoordinator of groups",
    ApiKey.FIND_COORDINATOR,
    GROUP_DESCRIBE,
    lambda cell: {"key_type": 0, "coordinator_keys": [cell.group, FRIEND]},
)
for version in (3, 9):
    probe(
        f"JoinGroup v{version}" if version < 4 else "JoinGroup",
        ApiKey.JOIN_GROUP,
        GROUP_READ,
        join if version > 3 else lambda cell: {**join(cell), "member_id": UNKNOWN_MEMBER},
        version=version,
    )
probe(
    "SyncGroup",
    ApiKey.SYNC_GROUP,
    GROUP_READ,
    lambda cell: {
        "group_id": cell.group,
        "generation_id": 1,
        "member_id": UNKNOWN_MEMBER,
        "protocol_type": "consumer",
        "protocol_name": "range",
    },
)
probe(
    "Heartbeat",
    ApiKey.HEARTBEAT,
    GROUP_READ,
    lambda cell: {"group_id": cell.group, "generation_id": 1, "member_id": UNKNOWN_MEMBER},
)
probe(
    "LeaveGroup v2",
    ApiKey.LEAVE_GROUP,
    GROUP_READ,
    lambda cell: {"group_id": cell.group, "member_id": UNKNOWN_MEMBER},
    version=2,
)
probe(
    "LeaveGroup",
    ApiKey.LEAVE_GROUP,
    GROUP_READ,
    lambda cell: {"group_id": cell.group, "members": [{"member_id": UNKNOWN_MEMBER}]},
)
for version in (2, 6):
    probe(
        f"DescribeGroups v{version}",
        ApiKey.DESCRIBE_GROUPS,
        GROUP_DESCRIBE,
        lambda cell: {"groups": [cell.group, FRIEND], "include_authorized_operations": True},
        version=version,
        makes="group",
        shows="group_state",
    )
probe(
    "DescribeGroups absent",
    ApiKey.DESCRIBE_GROUPS,
    GROUP_DESCRIBE,
    lambda cell: {"groups": [cell.group], "include_authorized_operations": True},
    shows="group_state",
)
for version in (0, 5):
    probe(f"ListGroups v{version}", ApiKey.LIST_GROUPS, SHOWS_GROUPS, lambda _: {}, version=version, makes="group")
probe(
    "DeleteGroups",
    ApiKey.DELETE_GROUPS,
    GROUP_DELETE,
    lambda cell: {"groups_names": [cell.group, f"{FRIEND}-absent"]},
    makes="group",
    is_lasting=True,
)
probe("DeleteGroups absent", ApiKey.DELETE_GROUPS, GROUP_DELETE, lambda cell: {"groups_names": [cell.group]})
for version in (0, 1):
    probe(
        f"ConsumerGroupHeartbeat v{version}",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        JOINS,
        lambda cell: heartbeat(cell, subscribed_topic_names=[cell.topic, FRIEND]),
        version=version,
        makes="topic",
        is_lasting=True,
        shows="member_epoch",
    )
probe(
    "ConsumerGroupHeartbeat absent",
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    JOINS,
    lambda cell: heartbeat(cell, subscribed_topic_names=[cell.topic]),
    is_lasting=True,
    shows="member_epoch",
)
probe(
    "ConsumerGroupHeartbeat by expression",
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    JOINS,
    lambda cell: heartbeat(cell, subscribed_topic_names=None, subscribed_topic_regex=cell.topic),
    makes="topic",
    is_lasting=True,
    shows="member_epoch",
)
probe(
    "ConsumerGroupHeartbeat of an unknown member",
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    JOINS,
    lambda cell: heartbeat(cell, member_epoch=5),
)
for version in (0, 1):
    probe(
        f"ConsumerGroupDescribe v{version}",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        FETCHES,
        lambda cell: {"group_ids": [cell.group], "include_authorized_operations": True},
        version=version,
        makes="topic consumer-group",
        shows="group_state members",
    )
probe(
    "ConsumerGroupDescribe absent",
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    GROUP_DESCRIBE,
    lambda cell: {"group_ids": [cell.group], "include_authorized_operations": True},
    shows="group_state",
)
