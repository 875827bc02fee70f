"""The tests of each suite that `make test` runs: what passes here, chosen for what it covers in a minute or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from .expectations import Expectations

EVERYTHING: Final = None
SAMPLES: Final[Mapping[str, frozenset[str] | None]] = {
    "java-tools": EVERYTHING,
    "java-tools-cluster": frozenset(
        {
            # A node that is not the first where that is the difference, and each kind of question once.
            *("topics-2", "quorum-3", "cluster-controller-1", "features-controller-2", "configs-controller-3"),
            *("unregister-2", "reassign_life", "election_unclean", "outage_topics_described"),
            *("replicas_dump_log", "replicas_log_dirs"),
        }
    ),
    "java-tools-output": EVERYTHING,
    "kafka-integration": frozenset(
        {
            "clients.admin.AdminFenceProducersTest.testFenceAfterProducerCommit()[1]",
            "clients.admin.AutoTopicCreationTest.testAutoCreateTopicWithExplicitBrokerConfig(ClusterInstance)[1]",
            "clients.admin.AutoTopicCreationTest.testAutoCreateTopicWithImplicitBrokerConfig(ClusterInstance)[1]",
            "clients.admin.DescribeProducersWithBrokerIdTest.testDescribeProducersFromFollower()[1]",
            "clients.admin.DynamicGroupConfigIntegrationTest.testDescribeGroupConfigSynonymsWithoutBrokerSynonym(ClusterInstance)[1]",
            "clients.admin.ListOffsetsIntegrationTest.testListMaxTimestampWithEmptyLog()[1]",
            "clients.consumer.PlaintextConsumerCommitTest.testAsyncConsumerSubscribeAndCommitSync()[1]",
            "clients.consumer.PlaintextConsumerCommitTest.testClassicConsumerSubscribeAndCommitSync()[1]",
            "clients.producer.ProducerFailureHandlingTest.testNotEnoughReplicasAfterBrokerShutdown(ClusterInstance)[1]",
            "clients.producer.ProducerFailureHandlingTest.testPartitionTooLargeForReplicationWithAckAll(ClusterInstance)[1]",
            "clients.producer.ProducerFailureHandlingTest.testSendAfterClosed(ClusterInstance)[1]",
            "clients.producer.ProducerFailureHandlingTest.testTooLargeRecordWithAckOne(ClusterInstance)[1]",
            "clients.producer.ProducerFailureHandlingTest.testTooLargeRecordWithAckZero(ClusterInstance)[1]",
            "clients.producer.ProducerIntegrationTest.testTransactionWithSendOffset(ClusterInstance)[1]",
            "clients.security.GroupAuthorizerIntegrationTest.testAuthorizedProduceAndConsumeWithClassic(ClusterInstance)[1]",
        }
    ),
    "kafka-python": EVERYTHING,
    # Four that pass on a quiet machine stay out, as they fail when the client is late, which is other work's doing:
    # 0001_multiobj (999 ms for the whole life of a client), 0055_producer_latency (milliseconds to a delivery),
    # 0068_produce_timeout (2 s to send a request, to librdkafka's mock cluster) and 0086_purge_remote (100 ms to send
    # the second Produce request; with one request in flight, any other one that leaves before it and meets the 50 s of
    # delay, on from the first answer, keeps it back for good). `make conformance` runs them.
    "librdkafka": frozenset(
        {
            "0002_unkpart",
            "0003_msgmaxsize",
            "0005_order",
            "0007_autotopic",
            "0008_reqacks",
            "0011_produce_batch",
            "0012_produce_consume",
            "0013_null_msgs",
            "0017_compression",
            "0021_rkt_destroy",
            "0031_get_offsets",
            "0035_api_version",
            "0036_partial_fetch",
            "0039_event_dr",
            "0044_partition_cnt",
            "0048_partitioner",
            "0054_offset_time",
            "0057_invalid_topic",
            "0059_bsearch",
            "0063_clusterid",
            "0065_yield",
            "0070_null_empty",
            "0073_headers",
            "0090_idempotence",
            "0103_transactions",
            "0132_strategy_ordering",
        }
    ),
    "librdkafka-sasl": frozenset({"0012_produce_consume", "0101_fetch_from_follower", "0135_sasl_credentials"}),
}


# Of the checks with users delegation_tokens stays. These start Java 13 times, ten seconds of two cores, for what others
# show as well: kafka-acls in `acls`, ACLs that bind in Apache Kafka's own tests, passwords in librdkafka-sasl. Of
# codecs lz4 and zstd stay.
LEFT_OUT: Final = frozenset({"acls_bind", "scram_login", "console_gzip", "console_none", "console_snappy"})


def sample(suite: str, expectations: Expectations) -> Callable[[str], bool]:
    """Whether a test of a suite that has a sample belongs to it; what cannot pass yet never does."""
    chosen = SAMPLES[suite]
    return lambda test: (
        test not in expectations.not_yet and test not in LEFT_OUT and (chosen is EVERYTHING or test in chosen)
    )
