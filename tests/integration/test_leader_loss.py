"""Leaders are killed, killed while they are the active controller too, and stopped, under a record each 10 ms.

`PENSTOCK_TEST_REPETITIONS` is how often each (2; 20 in a soak). The gaps are measured by `penstock bench`, not here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, ReplicatedCluster, draw_generator, repetitions, say
from waiting import wait_for

from penstock.bench.quorum_state import wait_settled
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

REPETITIONS = repetitions(sample=2, soak=20)


@pytest.mark.parametrize(
    ("lose", "is_controller"),
    [(LocalCluster.kill_node, False), (LocalCluster.kill_node, True), (LocalCluster.stop_node, False)],
    ids=["SIGKILL of a leader", "SIGKILL of a leader that is the active controller", "SIGTERM of a leader"],
)
def test_a_lost_leader_costs_nothing_acknowledged_and_no_write(
    tmp_path: Path, lose: Callable[[LocalCluster, int], None], is_controller: bool
) -> None:
    generator = draw_generator(__file__)
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster)
        with world.writer() as writer:
            for _ in range(REPETITIONS):
                leaders = set(world.balance().values())
                writer.wait_acknowledged(generator.randrange(1, RECORDS_BETWEEN_FAULTS), timeout_s=DEADLINE_S)
                controller_id = wait_settled(cluster).leader_id
                lost_id = controller_id if is_controller else generator.choice(sorted(leaders - {controller_id}))
                lose(cluster, lost_id)
                wait_for(lambda: lost_id not in world.leaders().values(), "another one leads")  # noqa: B023 - waited for here
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                cluster.start_node(lost_id)
                world.wait_in_sync()
        world.check(writer)
    world.check_replicas_equal()
    say(REPETITIONS, "leaders lost,", len(writer.acknowledged_s), "records acknowledged")
