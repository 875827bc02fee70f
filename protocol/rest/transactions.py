"""Bodies of `/v1/transactions`."""

from msgspec import Struct

from .elections import PartitionName
from .resources import Id, Offset


class TransactionsQuery(Struct, kw_only=True):
    """`state` and `producer_id` are one each; `pattern` is a regular expression for the whole id (KIP-1152)."""

    state: str | None = None
    producer_id: Offset | None = None
    running_longer_ms: Offset | None = None
    pattern: str | None = None
    page_size: int = 100
    page_token: str | None = None


class Transaction(Struct, kw_only=True):
    """What its coordinator knows. `age_ms` is null where no transaction is open; `error` where it was not described."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int | None
    timeout_ms: int | None
    age_ms: int | None
    partitions: list[PartitionName]
    error: str | None = None


class TransactionList(Struct, kw_only=True):
    """`next` is the `page_token` of the next page, null on the last one. `unanswered` are silent brokers."""

    transactions: list[Transaction]
    next: str | None
    unanswered: list[str]


class HangingQuery(Struct, kw_only=True):
    """`running_longer_ms`: only where nothing was written for so long; `transaction.max.timeout.ms` by default."""

    topic: str | None = None
    partition: Id | None = None
    broker_id: Id | None = None
    running_longer_ms: Offset = 900_000


class OpenTransaction(Struct, kw_only=True):
    """A transaction that a partition has open and that no coordinator will end."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    idle_ms: int


class HangingList(Struct, kw_only=True):
    transactions: list[OpenTransaction]


class AbortRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where the transaction begins in a partition, as `/v1/transactions/hanging` says."""

    topic: str
    partition: Id
    start_offset: Offset
