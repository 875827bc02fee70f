"""What the node's configuration says of transactions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
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
