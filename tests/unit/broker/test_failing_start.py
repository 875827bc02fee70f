"""A node that fails while it starts, and waits for its cluster, ends: it does not stay half started."""

from __future__ import annotations

import pytest
from simulated_nodes import CONTROLLERS, simulated_nodes

from penstock.chaos.simulation.cluster.machine import host_of
from penstock.storage.disk.memory_nodes import Operation

BROKER = 2


@pytest.mark.thorough
@pytest.mark.parametrize("operation", ["write", "create"])
def test_a_broker_whose_disk_fails_while_it_waits_for_the_cluster_ends(operation: Operation) -> None:
    with simulated_nodes(2, has_own_controllers=True) as nodes:
        machine = nodes.machines[BROKER]
        nodes.kill(BROKER)
        for controller in CONTROLLERS:
            nodes.network.cut(host_of(BROKER), host_of(controller))
        nodes.start(BROKER)
        nodes.pass_ms(3_000)
        assert machine.is_up
        assert not machine.is_ready
        machine.files.fail(operation, count=None)
        nodes.heal()
        nodes.wait(lambda: not machine.is_up, "end of the process")
        assert machine.has_failed
