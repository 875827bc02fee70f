"""Blocks of producer ids."""

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i64
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.quorum.decisions.producer_ids import allocate_producer_ids
from penstock.quorum.metadata.records import ProducerIdsRecord


def request(cluster: Cluster) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(cluster.image.brokers[1].epoch))


def test_no_id_is_given_twice(cluster: Cluster) -> None:
    cluster.add_brokers(1)
    blocks = [cluster.submit(allocate_producer_ids, request(cluster)) for _ in range(3)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1_000),
        (1_000, 1_000),
        (2_000, 1_000),
    ]


def test_an_old_process_gets_none(cluster: Cluster) -> None:
    cluster.add_brokers(1)
    old = request(cluster)
    cluster.add_brokers(1)
    with pytest.raises(KafkaError) as caught:
        cluster.decide(allocate_producer_ids, old)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_the_last_ids(cluster: Cluster) -> None:
    cluster.add_brokers(1)
    cluster.replay(
        [ProducerIdsRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(1), next_producer_id=2**63 - 1_000)]
    )
    with pytest.raises(KafkaError, match="Exhausted all producerIds"):
        cluster.decide(allocate_producer_ids, request(cluster))
