"""A replica's rules by themselves: what the metadata say of its partition, and the brokers it knows."""

from uuid import UUID

from typed_ids import node_ids

from penstock.broker.replicas.rules.effects import Effect, ProposeIsr
from penstock.broker.replicas.rules.in_sync_replicas import IsrProposal
from penstock.broker.replicas.rules.known_brokers import KnownBrokers
from penstock.broker.replicas.rules.partition_state import PartitionState
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import BrokerRegistration, PartitionRegistration

LAG_MS_MAX = 10_000


class Replica:
    """Replica 1 of a partition on brokers 1, 2 and 3, whose broker epochs are 11, 12 and 13; its log ends at `end`."""

    def __init__(
        self,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        high_watermark: int = 0,
        end: int = 0,
        min_insync_replicas: int = 1,
    ) -> None:
        self.brokers = KnownBrokers()
        self.brokers.registrations = {
            broker_id: BrokerRegistration(
                id=NodeId(broker_id),
                epoch=BrokerEpoch(10 + broker_id),
                incarnation_id=UUID(int=broker_id),
                is_fenced=False,
            )
            for broker_id in replicas
        }
        self.partition = PartitionState(
            node_id=NodeId(1),
            brokers=self.brokers,
            high_watermark=high_watermark,
            lag_ms_max=LAG_MS_MAX,
            min_insync_replicas=min_insync_replicas,
        )
        self.partition.on_log_end(end)
        self.end = end
        self.now_ms = 1_000_000
        self.registration = PartitionRegistration(
            replicas=node_ids(*replicas),
            directories=tuple(UUID(int=0) for _ in replicas),
            isr=node_ids(*replicas),
            leader=NodeId(1),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(-1),
        )

    def change_broker(self, broker_id: int, **fields: int | bool) -> None:
        changed = replace(self.brokers.registrations[broker_id], **fields)  # type: ignore[arg-type]
        self.brokers.registrations = {**self.brokers.registrations, broker_id: changed}

    def register(self, **fields: int | tuple[int, ...] | tuple[UUID, ...]) -> tuple[Effect, ...]:
        """The next change of the metadata: the partition epoch rises, and the leader epoch when a leader is named."""
        epoch = self.registration.leader_epoch + ("leader" in fields and self.registration.partition_epoch >= 0)
        known = {"partition_epoch": self.registration.partition_epoch + 1, "leader_epoch": epoch}
        self.registration = replace(self.registration, **{**known, **fields})  # type: ignore[arg-type]
        return self.partition.register(self.registration, log_end_offset=self.end, now_ms=self.now_ms)

    def append(self, count: int = 1) -> bool:
        """Whether the high watermark moved."""
        self.end += count
        return self.partition.on_log_end(self.end, self.now_ms)

    def fetch(self, replica_id: int, offset: int, *, epoch: int | None = None, start: int = 0) -> tuple[Effect, ...]:
        """A follower's fetch, by its registered process unless `epoch` is another."""
        return self.partition.on_follower_fetch(
            NodeId(replica_id),
            fetch_offset=offset,
            log_start_offset=start,
            leader_end_offset=self.end,
            broker_epoch=BrokerEpoch(10 + replica_id if epoch is None else epoch),
            now_ms=self.now_ms,
        )

    def wait(self, milliseconds: int) -> tuple[Effect, ...]:
        self.now_ms += milliseconds
        return self.partition.on_time(self.now_ms)

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark


def proposed(effects: tuple[Effect, ...]) -> tuple[int, ...] | None:
    """The members that effects propose."""
    proposal = proposal_in(effects)
    return None if proposal is None else tuple(replica for replica, _ in proposal.members)


def proposal_in(effects: tuple[Effect, ...]) -> IsrProposal | None:
    return next((effect.proposal for effect in effects if isinstance(effect, ProposeIsr)), None)
