"""Producer ids and transactions."""

from __future__ import annotations

from ...apis import (
    add_to_transaction,
    describe_producers,
    end_transaction,
    init_producer_id,
    transaction_administration,
    txn_offset_commit,
    write_txn_markers,
)
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    partitions, transactions, runtime = parts.data_path.partitions, parts.transactions, parts.runtime
    init_producer_id.register(handlers, parts.producer_ids, transactions)
    add_to_transaction.register(handlers, transactions, parts.metadata, parts.config.groups)
    txn_offset_commit.register(handlers, parts.groups, parts.metadata, parts.data_path.verifier)
    end_transaction.register(handlers, transactions)
    write_txn_markers.register(handlers, partitions, parts.groups, runtime.wall_clock_ms)
    describe_producers.register(handlers, partitions, runtime.steady_clock_ms)
    transaction_administration.register(handlers, transactions, runtime.wall_clock_ms)
