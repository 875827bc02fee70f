from penstock.broker.network.request import RequestContext
from penstock.broker.node.heartbeat_connections import HeartbeatConnections
from penstock.protocol.ids import NodeId


def connection(number: int) -> RequestContext:
    return RequestContext(listener_name="CONTROLLER", peer_host="10.0.0.1", client_id=None, connection_number=number)


def test_only_the_connection_of_the_last_heartbeat_counts() -> None:
    closed: list[int] = []
    heartbeats = HeartbeatConnections(closed.append)
    heartbeats.note(NodeId(2), connection(10))
    heartbeats.note(NodeId(3), connection(11))
    heartbeats.note(NodeId(2), connection(12))
    for number in (10, 99):
        heartbeats.on_connection_lost(connection(number), True)
    assert closed == []
    heartbeats.on_connection_lost(connection(12), True)
    heartbeats.on_connection_lost(connection(12), True)
    assert closed == [2]


def test_what_this_side_closed_tells_nothing_of_the_broker() -> None:
    closed: list[int] = []
    heartbeats = HeartbeatConnections(closed.append)
    heartbeats.note(NodeId(2), connection(10))
    heartbeats.on_connection_lost(connection(10), False)
    heartbeats.note(NodeId(2), connection(11))
    heartbeats.on_connection_lost(connection(11), True)
    assert closed == [2]
