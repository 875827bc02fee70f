"""Bodies of `/v1/elections`."""

from typing import Literal

from msgspec import Struct

from .resources import Id


class PartitionName(Struct, kw_only=True, forbid_unknown_fields=True):
    topic: str
    partition: Id


class ElectionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """`type` is that of KIP-460. `topics` are elected in all of their partitions; without both lists, all are."""

    type: Literal["preferred", "unclean"] = "preferred"
    topics: list[str] | None = None
    partitions: list[PartitionName] | None = None


class PartitionOutcome(Struct, kw_only=True):
    """What became of one partition: `error_code` 0 and no message where it was done."""

    topic: str
    partition: int
    error_code: int
    error: str | None
    message: str | None


class ElectionResult(Struct, kw_only=True):
    """`elected_count` partitions have a new leader; `results` lists at most 1,000, refusals first."""

    elected_count: int
    failed_count: int
    results: list[PartitionOutcome]
