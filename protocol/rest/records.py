"""Records that are produced and read over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from .resources import CollectionMetadata, Id, Offset

LIMIT_MAX = 1_000
MAX_BYTES = 4 * 1024 * 1024
BATCH_ENTRIES_MAX = 1_000
HEADERS_MAX = 1_000

DataType: TypeAlias = Literal["BINARY", "JSON", "STRING"]
Time: TypeAlias = Annotated[datetime, Meta(tz=True)]


class RecordData(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key or a value. `data` is base64 for BINARY, a string for STRING, anything for JSON; null is no data.

    Unknown fields are refused, because those of a schema registry would change what is written.
    """

    type: DataType = "BINARY"
    data: Any = None


class ProduceHeader(Struct, kw_only=True):
    """A header of a record; `value` is base64."""

    name: str
    value: str | None = None


class ProduceRecord(Struct, kw_only=True):
    """Confluent's `ProduceRequest`. Without a partition the key chooses it, as in Java; without a time it is now."""

    partition_id: Id | None = None
    headers: Annotated[list[ProduceHeader], Meta(max_length=HEADERS_MAX)] = []
    key: RecordData | None = None
    value: RecordData | None = None
    timestamp: Time | None = None


class ProducedData(Struct, kw_only=True):
    """Confluent's `ProduceResponseData`; `size` in bytes."""

    type: DataType
    size: int


class Produced(Struct, kw_only=True):
    """Confluent's `ProduceResponse`: what became of one record.

    `error_code` is 200 where the record is written, else Kafka's code, or 400 for what is no record; then there is
    `message` alone beside it.
    """

    error_code: int
    message: str | UnsetType = UNSET
    cluster_id: str | UnsetType = UNSET
    topic_name: str | UnsetType = UNSET
    partition_id: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    timestamp: datetime | UnsetType = UNSET
    key: ProducedData | UnsetType = UNSET
    value: ProducedData | UnsetType = UNSET


EntryId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=80)]


class BatchEntry(ProduceRecord, kw_only=True):
    """Confluent's `ProduceBatchRequestEntry`: a record with an id by which the answer names it."""

    id: EntryId


class ProduceBatch(Struct, kw_only=True):
    """Confluent's `ProduceBatchRequest`."""

    entries: Annotated[list[BatchEntry], Meta(min_length=1, max_length=BATCH_ENTRIES_MAX)]


class BatchSuccess(Struct, kw_only=True):
    """Confluent's `ProduceBatchResponseSuccessEntry`."""

    id: str
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: datetime
    key: ProducedData | UnsetType = UNSET
    value: ProducedData | UnsetType = UNSET


class BatchFailure(Struct, kw_only=True):
    """Confluent's `ProduceBatchResponseFailureEntry`."""

    id: str
    error_code: int
    message: str


class ProducedBatch(Struct, kw_only=True):
    """Confluent's `ProduceBatchResponse`, each in the order of the entries."""

    successes: list[BatchSuccess]
    failures: list[BatchFailure]


class RecordHeader(Struct, kw_only=True):
    """A header as it is read."""

    name: str
    value: RecordData | None


class ReadRecord(Struct, kw_only=True):
    """A record as it is read: what is text is STRING, what is an object or array in JSON is JSON, the rest BINARY."""

    partition_id: int
    offset: int
    timestamp: datetime | None
    headers: list[RecordHeader]
    key: RecordData | None
    value: RecordData | None


class RecordList(Struct, kw_only=True):
    """Records of one partition by offset. `metadata.next` continues behind them, and always can: more may come.

    Consumers read below `end_offset`.
    """

    kind: Literal["PenstockRecordList"] = "PenstockRecordList"
    metadata: CollectionMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    next_offset: int
    log_start_offset: int
    end_offset: int
    data: list[ReadRecord]


class TopicRecordList(Struct, kw_only=True):
    """Records of all partitions of a topic by time."""

    kind: Literal["PenstockTopicRecordList"] = "PenstockTopicRecordList"
    metadata: CollectionMetadata
    cluster_id: str
    topic_name: str
    data: list[ReadRecord]


Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]


class ReadQuery(Struct, kw_only=True):
    """Without a position the last `limit` records are read. `timestamp` is in milliseconds."""

    offset: Offset | None = None
    timestamp: Offset | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)] = 1024 * 1024
    isolation: Isolation = "read_committed"


class ReadTopicQuery(Struct, kw_only=True, rename={"from_": "from"}):
    """`timestamp`, in milliseconds, goes before `from`."""

    from_: Literal["earliest", "latest"] = "latest"
    timestamp: Offset | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)] = 1024 * 1024
    isolation: Isolation = "read_committed"
