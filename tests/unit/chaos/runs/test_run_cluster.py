"""What is known of nodes while some of them join and leave."""

from types import SimpleNamespace
from typing import Any

from penstock.chaos.runs.run_cluster import _admins, _state


def test_a_node_that_has_left_is_down_and_one_without_an_address_is_not_asked() -> None:
    nodes: dict[int, Any] = {1: SimpleNamespace(admin="127.0.0.1:9"), 2: SimpleNamespace(admin=None)}
    cluster: Any = SimpleNamespace(nodes=nodes, state=lambda node_id: nodes[node_id] and "up")
    assert _admins(cluster) == {1: "127.0.0.1:9"}
    assert [_state(cluster, node_id) for node_id in (1, 3)] == ["up", "down"]
