"""Bodies of `/v1/brokers/{broker_id}/maintenance` and `/v1/brokers/{broker_id}/decommission`."""

from msgspec import Struct

from .elections import PartitionName, PartitionOutcome
from .resources import Count


class DrainQuery(Struct, kw_only=True):
    """`until_restart`: the broker ends the drain by itself once it has been restarted and has caught up.

    A drain that is there already, and would outlive the restart, is left as it is.
    """

    until_restart: bool = False


class LedPartition(Struct, kw_only=True):
    """A partition that the broker leads, and why."""

    topic: str
    partition: int
    reason: str


class HarmedPartition(Struct, kw_only=True):
    """A partition that a stop of the broker would harm; `isr` is what would be left."""

    topic: str
    partition: int
    isr: list[int]
    min_insync_replicas: int


class Maintenance(Struct, kw_only=True):
    """Whether the broker is drained, and what its stop would cost now. Lists have 100 entries at most.

    `may_stop` is true where every partition would keep a leader and `min.insync.replicas` and, where the node votes, a
    majority of the voters would be left; else `blockers` say why it is not. `is_until_restart`: the drain ends with the
    broker's next start. `is_last`: no other broker is active and not drained, so waiting gains nothing.
    """

    broker_id: int
    is_drained: bool
    is_until_restart: bool
    is_active: bool
    is_last: bool
    may_stop: bool
    blockers: list[str]
    replica_count: int
    leadership_count: int
    leaderships: list[LedPartition]
    offline_count: int
    offline: list[HarmedPartition]
    under_min_isr_count: int
    under_min_isr: list[HarmedPartition]


class DecommissionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """`moving_max` partitions leave the broker at once. `unregister`: unregister it once nothing is left on it."""

    moving_max: Count = 50
    unregister: bool = False


class Decommission(Struct, kw_only=True):
    """How far a broker is from having no replicas. `bytes_left` is null where the broker did not tell sizes.

    `begun_count` moves began with this request; `results` has those that were refused.
    """

    broker_id: int
    is_drained: bool
    replica_count: int
    moving_count: int
    moving: list[PartitionName]
    bytes_left: int | None
    stuck: list[PartitionName]
    may_unregister: bool
    blockers: list[str]
    begun_count: int = 0
    is_unregistered: bool = False
    results: list[PartitionOutcome] = []
