"""By which connections brokers send their heartbeats to this controller, and which of those their side closed."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.ids import NodeId
from ..network.request import RequestContext


class HeartbeatConnections:
    """Of one listener. A broker's connection is the one that its last heartbeat or registration came by."""

    def __init__(self, on_closed: Callable[[NodeId], None]) -> None:
        """Calls `on_closed` with the id of a broker whose side closed that connection."""
        self._on_closed = on_closed
        self._connection_of: dict[NodeId, int] = {}
        self._broker_of: dict[int, NodeId] = {}

    def note(self, broker_id: NodeId, context: RequestContext) -> None:
        """A heartbeat or registration of the broker came by this connection."""
        connection = context.connection_number
        if self._connection_of.get(broker_id) != connection:
            self._broker_of.pop(self._connection_of.get(broker_id, -1), None)
            self._connection_of[broker_id], self._broker_of[connection] = connection, broker_id

    def on_connection_lost(self, context: RequestContext, is_closed_by_peer: bool) -> None:
        """Called at the end of every connection of the listener."""
        broker_id = self._broker_of.pop(context.connection_number, None)
        if broker_id is not None:
            del self._connection_of[broker_id]
            if is_closed_by_peer:
                self._on_closed(broker_id)
