"""Broker registrations as partition leaders use them: eligibility for the ISR, stale broker epochs, liveness."""

from collections.abc import Mapping

from ....protocol.ids import BrokerEpoch, NodeId
from ....quorum.metadata.image import BrokerRegistration


class KnownBrokers:
    """Implements `leader_state.Brokers` on the newest registrations."""

    __slots__ = ("registrations",)

    def __init__(self) -> None:
        self.registrations: Mapping[int, BrokerRegistration] = {}

    def may_join(self, broker_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        broker = self.registrations.get(broker_id)
        return broker is not None and broker.is_active and broker.epoch == broker_epoch

    def is_stale(self, broker_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        broker = self.registrations.get(broker_id)
        return broker is not None and broker.epoch > broker_epoch

    def is_alive(self, broker_id: NodeId) -> bool:
        broker = self.registrations.get(broker_id)
        return broker is not None and not broker.is_fenced
