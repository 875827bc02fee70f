"""Log directories that take no new replica (KIP-1066): what brokers say of them, and where replicas go then."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from broker_lives import register, registration, start
from drained_brokers import drain_request
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i64
from metadata_cluster import Cluster, directory_id

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.decisions.configs import incremental_alter_configs
from penstock.quorum.decisions.heartbeats import heartbeat
from penstock.quorum.decisions.placement import count_usable, place
from penstock.quorum.metadata.features import METADATA_VERSION
from penstock.quorum.metadata.records import BrokerRegistrationChangeRecord, FeatureLevelRecord

KNOWN, UNKNOWN = 30, 29


@pytest.fixture(autouse=True)
def _metadata_version(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name=METADATA_VERSION, feature_level=KNOWN)])


def cordon(cluster: Cluster, broker_id: int, *directories: UUID) -> None:
    request = BrokerHeartbeatRequest(
        broker_id=BrokerId(broker_id),
        broker_epoch=i64(cluster.image.brokers[broker_id].epoch),
        current_metadata_offset=i64(cluster.image.offset),
        want_fence=False,
        want_shut_down=False,
        cordoned_log_dirs=directories,
    )
    cluster.submit(heartbeat, request)


def placed(cluster: Cluster, replication_factor: int = 1) -> set[int]:
    chosen = place(cluster.image, partition_count=20, replication_factor=replication_factor, random=Random(1))
    return {broker_id for replicas in chosen for broker_id in replicas}


def test_a_broker_whose_directories_are_all_cordoned_takes_no_replica(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    assert placed(cluster) == {1, 2}
    cordon(cluster, 1, directory_id(1))
    assert cluster.image.brokers[1].cordoned_directories == (directory_id(1),)
    assert placed(cluster) == {2}
    assert count_usable(cluster.image) == 1
    with pytest.raises(KafkaError, match="or some brokers have all their log directories cordoned") as caught:
        placed(cluster, replication_factor=2)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    cordon(cluster, 2, directory_id(2))
    with pytest.raises(KafkaError, match="All brokers are currently fenced, or have all their log directories cordon"):
        placed(cluster)
    cordon(cluster, 1)
    assert placed(cluster) == {1}


def test_one_directory_is_enough(cluster: Cluster) -> None:
    more = UUID(int=5000)
    register(cluster, registration(1, directories=(directory_id(1), more)))
    cordon(cluster, 1, more)
    assert cluster.image.brokers[1].cordoned_directories == (more,)
    assert placed(cluster) == {1}


def test_only_a_change_is_a_record_and_foreign_directories_are_none_of_it(cluster: Cluster) -> None:
    start(cluster, 1)
    cordon(cluster, 1, directory_id(1), UUID(int=9000))
    assert [type(record) for record in cluster.records] == [BrokerRegistrationChangeRecord]
    assert cluster.image.brokers[1].cordoned_directories == (directory_id(1),)
    cordon(cluster, 1, directory_id(1))
    assert cluster.records == ()


def test_a_restart_keeps_a_directory_cordoned_until_the_broker_says_otherwise(cluster: Cluster) -> None:
    start(cluster, 1)
    cordon(cluster, 1, directory_id(1))
    register(cluster, registration(1, incarnation=2))
    assert cluster.image.brokers[1].cordoned_directories == (directory_id(1),)
    cordon(cluster, 1)
    assert not cluster.image.brokers[1].cordoned_directories


def test_a_cluster_of_an_older_metadata_version_knows_nothing_of_it(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name=METADATA_VERSION, feature_level=UNKNOWN)])
    start(cluster, 1)
    cordon(cluster, 1, directory_id(1))
    assert not cluster.image.brokers[1].cordoned_directories
    sentence = "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 30"
    assert configure(cluster) == (ErrorCode.INVALID_CONFIG, sentence)
    cluster.replay([FeatureLevelRecord(name=METADATA_VERSION, feature_level=KNOWN)])
    assert configure(cluster) == (ErrorCode.NONE, None)


def configure(cluster: Cluster) -> tuple[ErrorCode, str | None]:
    request = drain_request(1)
    (resource,) = request.resources
    config = replace(resource.configs[0], name="cordoned.log.dirs", value="*")
    request = replace(request, resources=(replace(resource, configs=(config,)),))
    (result,) = cluster.submit(incremental_alter_configs, request).responses
    return ErrorCode(int(result.error_code)), result.error_message
