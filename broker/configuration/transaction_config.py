"""Properties of transactions."""

from __future__ import annotations

from msgspec import Struct

from .property_values import PropertyValues


class TransactionConfig(Struct, frozen=True, kw_only=True):
    """Each field is Apache Kafka's property of that name, dots for underscores, unless it says otherwise."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    # From transaction.abort.timed.out.transaction.cleanup.interval.ms.
    abort_interval_ms: int
    # From transaction.remove.expired.transaction.cleanup.interval.ms.
    expiration_interval_ms: int
    transaction_partition_verification_enable: bool
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    # Whether that was not set, and so is as many as there are brokers when these are fewer.
    is_replication_factor_capped: bool
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transaction_state_log_load_buffer_size: int


def load_transactions(values: PropertyValues) -> TransactionConfig:
    """Raises ConfigError."""
    return TransactionConfig(
        transaction_max_timeout_ms=values.integer("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=values.integer("transactional.id.expiration.ms"),
        abort_interval_ms=values.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiration_interval_ms=values.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
        transaction_partition_verification_enable=values.boolean("transaction.partition.verification.enable"),
        add_partitions_to_txn_retry_backoff_ms=values.integer("add.partitions.to.txn.retry.backoff.ms"),
        add_partitions_to_txn_retry_backoff_max_ms=values.integer("add.partitions.to.txn.retry.backoff.max.ms"),
        transaction_state_log_num_partitions=values.integer("transaction.state.log.num.partitions"),
        transaction_state_log_replication_factor=values.integer("transaction.state.log.replication.factor"),
        is_replication_factor_capped=not values.is_set("transaction.state.log.replication.factor"),
        transaction_state_log_min_isr=values.integer("transaction.state.log.min.isr"),
        transaction_state_log_segment_bytes=values.integer("transaction.state.log.segment.bytes"),
        transaction_state_log_load_buffer_size=values.integer("transaction.state.log.load.buffer.size"),
    )
