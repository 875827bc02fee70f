"""Who leads what, as small as it can be told."""

from msgspec import Struct


class TopicMap(Struct, kw_only=True):
    """One topic: by partition its leader (-1: none), and how many replicas are in sync; `replicas` are meant to be."""

    topic_name: str
    leaders: list[int]
    in_sync: list[int]
    replicas: list[int]


class PartitionMap(Struct, kw_only=True):
    """All topics after the metadata entry at `offset`, which the cluster agreed on at `timestamp_ms`."""

    offset: int
    timestamp_ms: int
    topics: list[TopicMap]
