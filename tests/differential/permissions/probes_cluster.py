"""Questions about the cluster, its ACLs, quotas, users and tokens."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.permissions.acl_states import Kind, Operation
from differential.permissions.probes import FRIEND, always, probe

from penstock.protocol.apis import APIS, ApiKey

TIMEOUT_MS = 10_000
UNKNOWN_BROKER = 99
ANY = 1
CLUSTER: dict[Kind, tuple[Operation, ...]] = {Kind.CLUSTER: ()}
CLUSTER_AND_TOPIC: dict[Kind, tuple[Operation, ...]] = {Kind.CLUSTER: (), Kind.TOPIC: ()}
EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": "nothing is called so",
    "pattern_type_filter": ANY,
    "operation": ANY,
    "permission_type": ANY,
}
SALT, SALTED = b"sixteen bytes of", b"thirty-two bytes of a password.."
OWNS: dict[Kind, tuple[Operation, ...]] = {Kind.DELEGATION_TOKEN: (), Kind.USER: ()}


def topics(*names: str) -> list[dict[str, Any]]:
    return [{"topic": name, "topic_name": name, "partitions": [0]} for name in names]


probe(
    "DescribeCluster",
    ApiKey.DESCRIBE_CLUSTER,
    CLUSTER,
    lambda _: {"include_cluster_authorized_operations": True, "endpoint_type": 1},
    shows="brokers",
)
probe(
    "DescribeQuorum",
    ApiKey.DESCRIBE_QUORUM,
    CLUSTER,
    lambda _: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    shows="topics",
)
probe(
    "UpdateFeatures",
    ApiKey.UPDATE_FEATURES,
    CLUSTER,
    lambda _: {
        "timeout": TIMEOUT_MS,
        "validate_only": True,
        "feature_updates": [{"feature": "unknown.feature", "max_version_level": 1, "upgrade_type": 1}],
    },
)
probe("UnregisterBroker", ApiKey.UNREGISTER_BROKER, CLUSTER, lambda _: {"broker_id": UNKNOWN_BROKER})
probe(
    "DescribeLogDirs",
    ApiKey.DESCRIBE_LOG_DIRS,
    CLUSTER_AND_TOPIC,
    lambda cell: {"topics": [{"topic": cell.topic, "partitions": [0]}]},
    makes="topic",
    shows="results",
)
probe(
    "DescribeLogDirs v1",
    ApiKey.DESCRIBE_LOG_DIRS,
    CLUSTER_AND_TOPIC,
    lambda cell: {"topics": [{"topic": cell.topic, "partitions": [0]}]},
    makes="topic",
    shows="results",
    version=1,
)
probe(
    "AlterReplicaLogDirs",
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    CLUSTER_AND_TOPIC,
    lambda cell: {"dirs": [{"path": "/nowhere", "topics": [{"name": cell.topic, "partitions": [0]}]}]},
    makes="topic",
)
for version in (0, 2):
    probe(
        f"ElectLeaders v{version}",
        ApiKey.ELECT_LEADERS,
        CLUSTER_AND_TOPIC,
        lambda cell: {
            "election_type": 0,
            "timeout": TIMEOUT_MS,
            "topic_partitions": [{"topic": cell.topic, "partitions": [0]}],
        },
        makes="topic",
        version=version,
    )
probe(
    "AlterPartitionReassignments",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    CLUSTER_AND_TOPIC,
    lambda cell: {
        "timeout": TIMEOUT_MS,
        "topics": [{"name": cell.topic, "partitions": [{"partition_index": 0, "replicas": None}]}],
    },
    makes="topic",
)
probe(
    "ListPartitionReassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    CLUSTER_AND_TOPIC,
    lambda cell: {"timeout": TIMEOUT_MS, "topics": [{"name": cell.topic, "partition_indexes": [0]}]},
    makes="topic",
)
probe("DescribeAcls", ApiKey.DESCRIBE_ACLS, CLUSTER, lambda _: EVERY_ACL)
probe(
    "CreateAcls",
    ApiKey.CREATE_ACLS,
    CLUSTER,
    lambda _: {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": "x",
                "resource_pattern_type": 3,
                "principal": "User:another",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ]
    },
)
probe(
    "CreateAcls of an invalid one",
    ApiKey.CREATE_ACLS,
    CLUSTER,
    lambda _: {
        "creations": [
            {
                "resource_type": 4,
                "resource_name": "x",
                "resource_pattern_type": 3,
                "principal": "User:another",
                "host": "*",
                "operation": 8,
                "permission_type": 3,
            }
        ]
    },
)
probe("DeleteAcls", ApiKey.DELETE_ACLS, CLUSTER, lambda _: {"filters": [EVERY_ACL]})
probe(
    "DescribeClientQuotas",
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    CLUSTER,
    lambda _: {"components": [{"entity_type": "user", "match_type": 0, "match": "unknown"}], "strict": True},
    shows="entries",
)
probe(
    "AlterClientQuotas",
    ApiKey.ALTER_CLIENT_QUOTAS,
    CLUSTER,
    lambda _: {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": FRIEND}],
                "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
            }
        ],
        "validate_only": True,
    },
)
probe(
    "DescribeUserScramCredentials",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    CLUSTER,
    lambda _: {"users": [{"name": FRIEND}]},
)
probe(
    "DescribeUserScramCredentials of all",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    CLUSTER,
    lambda _: {"users": []},
    shows="results",
)
probe(
    "AlterUserScramCredentials",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    CLUSTER,
    lambda _: {
        "deletions": [{"name": FRIEND, "mechanism": 1}],
        "upsertions": [
            {"name": f"{FRIEND}-absent", "mechanism": 1, "iterations": 100, "salt": SALT, "salted_password": SALTED}
        ],
    },
)
probe(
    "CreateDelegationToken",
    ApiKey.CREATE_DELEGATION_TOKEN,
    {Kind.USER: ()},
    lambda cell: {
        "owner_principal_type": "User",
        "owner_principal_name": cell.owner,
        "renewers": [],
        "max_lifetime": 3_600_000,
    },
)
probe(
    "CreateDelegationToken of his own",
    ApiKey.CREATE_DELEGATION_TOKEN,
    {Kind.USER: ()},
    lambda _: {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": [],
        "max_lifetime": 3_600_000,
    },
)
probe(
    "DescribeDelegationToken",
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    OWNS,
    lambda cell: {"owners": [{"principal_type": "User", "principal_name": cell.owner}]},
    makes="token",
)
probe(
    "DescribeDelegationToken of all",
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    OWNS,
    lambda _: {"owners": None},
    makes="token",
)
probe(
    "RenewDelegationToken",
    ApiKey.RENEW_DELEGATION_TOKEN,
    {Kind.USER: ()},
    lambda _: {"hmac": b"unknown", "renew_period": 1_000},
)
probe(
    "ExpireDelegationToken",
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    {Kind.USER: ()},
    lambda _: {"hmac": b"unknown", "expiry_time_period": 1_000},
)

# What brokers ask of controllers, sent to a broker's listener. It closes the connection without a look at permissions.
UNKNOWN = {"broker_id": UNKNOWN_BROKER, "broker_epoch": 1}
INTERNAL: dict[ApiKey, dict[str, Any]] = {
    ApiKey.ALTER_PARTITION: {**UNKNOWN, "topics": []},
    ApiKey.BROKER_HEARTBEAT: {**UNKNOWN, "current_metadata_offset": 0, "want_fence": True},
    ApiKey.BROKER_REGISTRATION: {
        "broker_id": UNKNOWN_BROKER,
        "cluster_id": "another",
        "listeners": [],
        "features": [],
        "incarnation_id": UUID(int=5),
    },
    ApiKey.ALLOCATE_PRODUCER_IDS: UNKNOWN,
    ApiKey.CONTROLLER_REGISTRATION: {"controller_id": UNKNOWN_BROKER, "incarnation_id": UUID(int=5)},
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: {**UNKNOWN, "directories": []},
    ApiKey.ENVELOPE: {"request_data": b"", "request_principal": b"", "client_host_address": b"\x7f\0\0\1"},
    ApiKey.VOTE: {"cluster_id": "another", "topics": []},
    ApiKey.BEGIN_QUORUM_EPOCH: {"cluster_id": "another", "topics": []},
    ApiKey.END_QUORUM_EPOCH: {"cluster_id": "another", "topics": []},
    ApiKey.FETCH_SNAPSHOT: {"cluster_id": "another", "replica_id": UNKNOWN_BROKER, "max_bytes": 1, "topics": []},
    ApiKey.UPDATE_RAFT_VOTER: {"cluster_id": "another", "voter_id": UNKNOWN_BROKER, "listeners": []},
}


for key, values in INTERNAL.items():
    probe(f"{APIS[key].name} of a broker", key, CLUSTER, always(values))
    if key is not ApiKey.CONTROLLER_REGISTRATION:  # it would be registered
        probe(f"{APIS[key].name} of a controller", key, CLUSTER, always(values), on_controller=True)
