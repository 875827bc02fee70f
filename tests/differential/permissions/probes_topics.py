"""Questions that make, change and delete topics and settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.permissions.acl_states import Kind, Operation
from differential.permissions.probes import FRIEND, Request, always, probe

from penstock.protocol.apis import APIS, ApiKey

TIMEOUT_MS = 10_000
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""ConfigResource.Type of the protocol."""
LOGGER = "root"

Alteration = Callable[..., dict[str, Any]]

TOPIC_CREATE: dict[Kind, tuple[Operation, ...]] = {Kind.TOPIC: (), Kind.CLUSTER: ()}
TOPIC_DELETE: dict[Kind, tuple[Operation, ...]] = {Kind.TOPIC: (), Kind.CLUSTER: ()}
TOPIC_ALTER = {Kind.TOPIC: (Operation.ALTER,)}
READS_TOPIC = {Kind.TOPIC: (Operation.DESCRIBE_CONFIGS,)}
READS_GROUP = {Kind.GROUP: (Operation.DESCRIBE_CONFIGS,)}
READS_CLUSTER = {Kind.CLUSTER: (Operation.DESCRIBE_CONFIGS,)}
ALTERS_TOPIC = {Kind.TOPIC: (Operation.ALTER_CONFIGS,)}
ALTERS_GROUP = {Kind.GROUP: (Operation.ALTER_CONFIGS,)}
ALTERS_CLUSTER = {Kind.CLUSTER: (Operation.ALTER_CONFIGS,)}


def create(*names: str, checks_only: bool = False) -> dict[str, Any]:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    return {"topics": topics, "timeout": TIMEOUT_MS, "validate_only": checks_only}


def delete_by_name(version: int, *names: str) -> dict[str, Any]:
    if version < 6:
        return {"topic_names": list(names), "timeout": TIMEOUT_MS}
    return {"topics": [{"name": name, "topic_id": None} for name in names], "timeout": TIMEOUT_MS}


def resources(kind: int, *names: str, **fields: Any) -> dict[str, Any]:
    return {"resources": [{"resource_type": kind, "resource_name": name, **fields} for name in names]}


def alter(kind: int, key: str, value: str, *names: str) -> dict[str, Any]:
    setting = {"name": key, "config_operation": 0, "value": value}
    return {**resources(kind, *names, configs=[setting]), "validate_only": True}


def replace(kind: int, key: str, value: str, *names: str) -> dict[str, Any]:
    return {**resources(kind, *names, configs=[{"name": key, "value": value}]), "validate_only": True}


def of_topics(ask: Alteration, *others: str) -> Request:
    return lambda cell: ask(TOPIC, "retention.ms", "3600000", cell.topic, *others)


def of_groups(ask: Alteration, *others: str) -> Request:
    return lambda cell: ask(GROUP, "consumer.session.timeout.ms", "46000", cell.group, *others)


probe(
    "CreateTopics",
    ApiKey.CREATE_TOPICS,
    TOPIC_CREATE,
    lambda cell: create(cell.topic),
    is_lasting=True,
    shows="num_partitions replication_factor configs",
)
probe(
    "CreateTopics checked",
    ApiKey.CREATE_TOPICS,
    TOPIC_CREATE,
    lambda cell: create(cell.topic, FRIEND, checks_only=True),
    shows="num_partitions replication_factor configs",
)
probe("CreateTopics existing", ApiKey.CREATE_TOPICS, TOPIC_CREATE, lambda cell: create(cell.topic), makes="topic")
probe(
    "CreateTopics v4", ApiKey.CREATE_TOPICS, TOPIC_CREATE, lambda cell: create(cell.topic, checks_only=True), version=4
)
probe(
    "CreateTopics of the metadata",
    ApiKey.CREATE_TOPICS,
    {Kind.CLUSTER: ()},
    lambda _: create("__cluster_metadata", checks_only=True),
    shows="name",
)
probe(
    "DeleteTopics v5",
    ApiKey.DELETE_TOPICS,
    TOPIC_DELETE,
    lambda cell: delete_by_name(5, cell.topic),
    version=5,
    makes="topic",
    is_lasting=True,
)
probe(
    "DeleteTopics",
    ApiKey.DELETE_TOPICS,
    TOPIC_DELETE,
    lambda cell: delete_by_name(6, cell.topic, f"{FRIEND}-absent"),
    makes="topic",
    is_lasting=True,
)
probe(
    "DeleteTopics by id",
    ApiKey.DELETE_TOPICS,
    TOPIC_DELETE,
    lambda cell: {"topics": [{"name": None, "topic_id": cell.ids[cell.topic]}], "timeout": TIMEOUT_MS},
    makes="topic",
    is_lasting=True,
)
probe("DeleteTopics absent", ApiKey.DELETE_TOPICS, TOPIC_DELETE, lambda cell: delete_by_name(6, cell.topic))
probe(
    "DeleteTopics absent v5", ApiKey.DELETE_TOPICS, TOPIC_DELETE, lambda cell: delete_by_name(5, cell.topic), version=5
)
probe(
    "CreatePartitions",
    ApiKey.CREATE_PARTITIONS,
    TOPIC_ALTER,
    lambda cell: {
        "topics": [{"name": name, "count": 2, "assignments": None} for name in (cell.topic, FRIEND)],
        "timeout": TIMEOUT_MS,
        "validate_only": True,
    },
    makes="topic",
)
probe(
    "CreatePartitions absent",
    ApiKey.CREATE_PARTITIONS,
    TOPIC_ALTER,
    lambda cell: {
        "topics": [{"name": cell.topic, "count": 2, "assignments": None}],
        "timeout": TIMEOUT_MS,
        "validate_only": True,
    },
)

probe(
    "DescribeConfigs of topics",
    ApiKey.DESCRIBE_CONFIGS,
    READS_TOPIC,
    lambda cell: resources(TOPIC, cell.topic, FRIEND, configuration_keys=None),
    makes="topic",
    shows="configs",
)
probe(
    "DescribeConfigs of an absent topic",
    ApiKey.DESCRIBE_CONFIGS,
    READS_TOPIC,
    lambda cell: resources(TOPIC, cell.topic, configuration_keys=None),
    shows="configs",
)
probe(
    "DescribeConfigs of groups",
    ApiKey.DESCRIBE_CONFIGS,
    READS_GROUP,
    lambda cell: resources(GROUP, cell.group, FRIEND, configuration_keys=None),
    shows="configs",
)
for word, kind, name in (
    ("the broker", BROKER, "1"),
    ("the brokers", BROKER, ""),
    ("its loggers", BROKER_LOGGER, "1"),
    ("client metrics", CLIENT_METRICS, FRIEND),
):
    asked = resources(kind, name, configuration_keys=None)
    probe(f"DescribeConfigs of {word}", ApiKey.DESCRIBE_CONFIGS, READS_CLUSTER, always(asked), shows="configs")
probe(
    "DescribeConfigs of a topic and a broker",
    ApiKey.DESCRIBE_CONFIGS,
    {Kind.TOPIC: (Operation.DESCRIBE_CONFIGS,), Kind.CLUSTER: (Operation.DESCRIBE_CONFIGS,)},
    lambda cell: {
        "resources": resources(TOPIC, cell.topic, configuration_keys=None)["resources"]
        + resources(BROKER, "1", configuration_keys=None)["resources"]
    },
    makes="topic",
    shows="configs",
)

for api, ask in ((ApiKey.INCREMENTAL_ALTER_CONFIGS, alter), (ApiKey.ALTER_CONFIGS, replace)):
    word = APIS[api].name
    probe(f"{word} of topics", api, ALTERS_TOPIC, of_topics(ask, FRIEND), makes="topic")
    probe(f"{word} of an absent topic", api, ALTERS_TOPIC, of_topics(ask))
    probe(f"{word} of groups", api, ALTERS_GROUP, of_groups(ask, FRIEND))
    for of, kind, name, key, value in (
        ("the broker", BROKER, "1", "log.cleaner.threads", "1"),
        ("the brokers", BROKER, "", "min.insync.replicas", "1"),
        ("another broker", BROKER, "99", "log.cleaner.threads", "1"),
        ("loggers", BROKER_LOGGER, "1", LOGGER, "INFO"),
        ("client metrics", CLIENT_METRICS, FRIEND, "interval.ms", "60000"),
    ):
        probe(f"{word} of {of}", api, ALTERS_CLUSTER, always(ask(kind, key, value, name)))
probe(
    "ListConfigResources",
    ApiKey.LIST_CONFIG_RESOURCES,
    READS_CLUSTER,
    lambda _: {"resource_types": []},
    shows="config_resources",
)
probe("ListConfigResources v0", ApiKey.LIST_CONFIG_RESOURCES, READS_CLUSTER, lambda _: {}, version=0)
