"""Bodies of `/v1/topics`: topics and partitions as a page draws them."""

from msgspec import Struct


class TopicsQuery(Struct, kw_only=True):
    """`topic` gives the partitions of one topic; else there are all topics, by name, without their partitions.

    `offsets` asks the leaders for offsets and sizes. `page_size` counts topics, or partitions of the one topic.
    """

    topic: str | None = None
    include_internal: bool = True
    offsets: bool = True
    page_size: int = 50
    page_token: str | None = None


class PartitionOverview(Struct, kw_only=True):
    """`leader` is null without one; offsets and size are null where the leader did not tell them."""

    partition: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    last_known_elr: list[int]
    adding: list[int]
    removing: list[int]
    high_watermark: int | None
    log_start_offset: int | None
    size_bytes: int | None


class TopicOverview(Struct, kw_only=True):
    """`high_watermarks` is the sum over partitions: two answers give a rate. It, `records` (what can still be read) and
    `size_bytes` (at the leaders) leave out partitions whose leader did not tell; then `is_complete` is false.
    """

    name: str
    topic_id: str
    is_internal: bool
    partition_count: int
    replication_factor: int
    leaderless_count: int
    under_replicated_count: int
    moving_count: int
    is_complete: bool
    high_watermarks: int | None
    records: int | None
    size_bytes: int | None
    partitions: list[PartitionOverview] | None = None


class TopicOverviewList(Struct, kw_only=True):
    """`next` is the `page_token` of the next page, null on the last one. `asked_ms` is when leaders were asked."""

    asked_ms: int
    topics: list[TopicOverview]
    next: str | None
    unanswered: list[str]
