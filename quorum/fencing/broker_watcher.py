"""The port through which the active controller reports heartbeats and changes of brokers."""

from typing import Protocol

from ...protocol.ids import BrokerEpoch, NodeId


class BrokerWatcher(Protocol):
    """Called on the loop; must not wait."""

    def on_active(self, former_leader_id: NodeId | None) -> None:
        """This node is the active controller: its epoch's first entry is committed and replayed.

        Before it, as far as is known, that node was.
        """

    def on_inactive(self) -> None:
        """This node is not the active controller, or not any more."""

    def on_heard(self, broker_id: NodeId, broker_epoch: BrokerEpoch, heard_ms: int) -> None:
        """A heartbeat or registration of that process of a broker was accepted; it came at `heard_ms` of the loop."""


class NoWatcher:
    """Lets it pass."""

    def on_active(self, _: NodeId | None) -> None:
        """Nothing follows."""

    def on_inactive(self) -> None:
        """Nothing follows."""

    def on_heard(self, *_: int) -> None:
        """Nothing follows."""
