"""Bodies of `/v1/reassignments`."""

from msgspec import Struct

from .elections import PartitionName, PartitionOutcome
from .resources import Count, Id


class Move(Struct, kw_only=True):
    """A partition's replicas as they are and as they are to be, the preferred leader first."""

    topic: str
    partition: int
    before: list[int]
    after: list[int]
    adding: list[int]
    removing: list[int]


class Assignment(Struct, kw_only=True, forbid_unknown_fields=True):
    topic: str
    partition: Id
    replicas: list[Id]


class ReassignmentRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Either a `plan`, or what a plan is made for: these `topics` (null: all) onto these `brokers` (null: all that are
    active and not drained), with few replicas moved. `validate_only` makes the plan and begins nothing.

    At most `moving_max` partitions are begun at once; asking again begins the next ones.
    """

    plan: list[Assignment] | None = None
    topics: list[str] | None = None
    brokers: list[Id] | None = None
    validate_only: bool = False
    moving_max: Count = 50


class ReassignmentPlan(Struct, kw_only=True):
    """`moves` are all that the plan needs (`move_count`; the first 1,000 are listed), `begun_count` were begun now.

    `bytes_to_copy` is null where the size of a partition is not known. `results` has those that were refused.
    """

    move_count: int
    moves: list[Move]
    bytes_to_copy: int | None
    begun_count: int
    results: list[PartitionOutcome]


class MovingReplica(Struct, kw_only=True):
    """A replica that is being added. `bytes_left` is null where its broker or the leader did not say."""

    broker_id: int
    is_in_sync: bool
    bytes: int | None
    bytes_left: int | None


class Reassignment(Struct, kw_only=True):
    """A partition that moves: `replicas` are all that it has now."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    adding: list[MovingReplica]
    removing: list[int]
    bytes: int | None


class ReassignmentList(Struct, kw_only=True):
    """`count` partitions move; the first 1,000 are listed. `bytes_left` is that of those listed whose sizes are known;
    `unanswered` are brokers that did not tell sizes."""

    count: int
    bytes_left: int
    reassignments: list[Reassignment]
    unanswered: list[str]


class CancelRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which partitions go back to the replicas that they had; null: all that move."""

    partitions: list[PartitionName] | None = None


class CancelResult(Struct, kw_only=True):
    cancelled_count: int
    results: list[PartitionOutcome]
