"""An administrator gives one logger of one node another level, through kafka-python's unchanged admin client."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster_views import create_topic
from kafka import KafkaAdminClient
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from waiting import wait_for

from penstock.local.cluster import LocalCluster

pytestmark = [
    pytest.mark.integration,
    # The client leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

LOGGER = "penstock.storage"
MODULE = "penstock.storage.directories.removed_folders"
TOPIC = "short-lived"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), node_count=3) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[KafkaAdminClient]:
    with connected(cluster.bootstrap) as client:
        yield client
    del client
    gc.collect()


@contextmanager
def connected(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield client
    finally:
        client.close()


def levels(admin: KafkaAdminClient, node_id: int) -> dict[str, str]:
    resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(node_id))
    described = admin.describe_configs([resource])["broker_logger"][str(node_id)]
    assert {one["config_source"] for one in described.values()} == {"DYNAMIC_BROKER_LOGGER_CONFIG"}
    assert not any(one["read_only"] for one in described.values())
    return {name: one["value"] for name, one in described.items()}


def alter(admin: KafkaAdminClient, node_id: int, logger: str, operation: AlterConfigOp, level: str | None) -> str:
    resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(node_id), {logger: (operation, level)})
    answer = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)["broker_logger"][str(node_id)]
    assert isinstance(answer, str)
    return answer


def lines(cluster: LocalCluster, node_id: int, level: str) -> list[str]:
    return [line for line in cluster.nodes[node_id].log.read_text().splitlines() if line.split()[1:2] == [level]]


def make_and_delete(cluster: LocalCluster, admin: KafkaAdminClient) -> None:
    """A topic with a replica of each of two partitions on every node; returns when no node has a folder of it."""
    create_topic(cluster.nodes[1].address, TOPIC, {0: (1, 2, 3), 1: (2, 3, 1)})
    folders = [node.data / f"{TOPIC}-{index}" for node in cluster.nodes.values() for index in (0, 1)]
    wait_for(lambda: all(folder.exists() for folder in folders))
    admin.delete_topics([TOPIC])
    wait_for(lambda: not any(folder.exists() for folder in folders))


def test_one_logger_of_one_node_tells_details_until_it_is_told_otherwise(
    cluster: LocalCluster, admin: KafkaAdminClient
) -> None:
    assert sorted(admin.list_config_resources(["BROKER_LOGGER"])["broker_logger"]) == ["1", "2", "3"]
    before = levels(admin, 2)
    assert {before["root"], before["penstock"], before[LOGGER], before[MODULE]} == {"INFO"}

    assert alter(admin, 2, LOGGER, AlterConfigOp.SET, "DEBUG") == "OK"
    after = levels(admin, 2)
    assert {name: level for name, level in after.items() if level != before.get(name)} == {
        name: "DEBUG" for name in after if name == LOGGER or name.startswith(f"{LOGGER}.")
    }
    assert levels(admin, 1)[LOGGER] == levels(admin, 3)[LOGGER] == "INFO"

    make_and_delete(cluster, admin)
    details = lines(cluster, 2, "DEBUG")
    assert {line.rpartition(" ")[2] for line in details} >= {f"({MODULE})"}
    assert sum(f"Log is renamed: partition={TOPIC}-" in line for line in details) == 2
    assert not lines(cluster, 1, "DEBUG")
    assert not lines(cluster, 3, "DEBUG")

    assert alter(admin, 2, LOGGER, AlterConfigOp.DELETE, None) == "OK"
    assert levels(admin, 2)[MODULE] == "INFO"
    make_and_delete(cluster, admin)
    assert lines(cluster, 2, "DEBUG") == details

    assert alter(admin, 2, "root", AlterConfigOp.SET, "FATAL") == "OK"
    assert alter(admin, 2, "penstock", AlterConfigOp.SET, "ERROR") == "OK"
    update = "Log levels changed: penstock=ERROR (before: INFO) (penstock.broker.configuration.loggers)"
    assert sum(update in line for line in lines(cluster, 2, "WARNING")) == 1
    cluster.nodes[2].stop(timeout_s=60)
    cluster.nodes[2].start()
    cluster.wait_ready()
    # Nothing of it was kept.
    with connected(cluster.bootstrap) as another:
        assert levels(another, 2)["root"] == levels(another, 2)["penstock"] == "INFO"


def test_a_change_of_loggers_is_refused_as_by_apache_kafka(cluster: LocalCluster, admin: KafkaAdminClient) -> None:
    assert alter(admin, 1, "kafka.server.KafkaApis", AlterConfigOp.SET, "DEBUG").endswith(
        "Logger kafka.server.KafkaApis does not exist!"
    )
    assert alter(admin, 1, LOGGER, AlterConfigOp.SET, "LOUD").endswith(
        f"Cannot set the log level of {LOGGER} to LOUD as it is not a supported log level. "
        "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
    )
    assert alter(admin, 1, "root", AlterConfigOp.DELETE, None).endswith(
        "Removing the log level of the root logger is not allowed"
    )
    assert alter(admin, 1, LOGGER, AlterConfigOp.APPEND, "DEBUG").endswith(
        "APPEND operation is not allowed for the BROKER_LOGGER resource"
    )
    assert levels(admin, 1)[LOGGER] == "INFO"
