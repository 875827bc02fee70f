"""The topics of the coordinators, which are made when the first client asks for one."""

from __future__ import annotations

from collections.abc import Mapping

from ...coordinators.group_coordinator import OFFSETS_TOPIC
from ...coordinators.internal_topic import InternalTopic
from ...coordinators.transaction_coordinator import TRANSACTIONS_TOPIC
from .dependencies import HandlerDependencies


def offsets_topic(parts: HandlerDependencies) -> InternalTopic:
    config = parts.config.groups
    return InternalTopic(
        OFFSETS_TOPIC,
        lambda: parts.metadata.image,
        parts.controller,
        settled=parts.data_path.partitions.settled,
        partition_count=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        is_replication_factor_capped=config.is_replication_factor_capped,
        configs=lambda _: {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def transactions_topic(parts: HandlerDependencies) -> InternalTopic:
    config = parts.config.transactions

    def configs(replication_factor: int) -> Mapping[str, str]:
        # If the replication factor was defaulted and capped by the brokers, min.insync.replicas is capped with it.
        min_isr = config.transaction_state_log_min_isr
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(
                min(min_isr, replication_factor) if config.is_replication_factor_capped else min_isr
            ),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }

    return InternalTopic(
        TRANSACTIONS_TOPIC,
        lambda: parts.metadata.image,
        parts.controller,
        settled=parts.data_path.partitions.settled,
        partition_count=config.transaction_state_log_num_partitions,
        replication_factor=config.transaction_state_log_replication_factor,
        is_replication_factor_capped=config.is_replication_factor_capped,
        configs=configs,
    )
