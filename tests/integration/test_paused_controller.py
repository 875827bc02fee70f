"""The active controller stands still (SIGSTOP) for longer than a session; brokers that do not vote serve on.

`PENSTOCK_TEST_REPETITIONS` is at how many phases of their fetches and heartbeats (2; 50 in a soak).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from cluster_views import brokers, create_topic
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, ReplicatedCluster, draw_generator, repetitions, say
from waiting import wait_for

from penstock.bench.quorum_state import quorum_state
from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import ErrorCode

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

REPETITIONS = repetitions(sample=2, soak=50)
VOTERS: Final = (1, 2, 3)
BROKERS: Final = (4, 5, 6)
# A heartbeat is due every two seconds, a fetch of the metadata ends after half a second.
PERIOD_S: Final = 2.0


def active_id(cluster: LocalCluster) -> int:
    """The leader of the quorum, once all that vote say so."""
    found: set[int] = set()

    def is_settled() -> bool:
        states = [quorum_state(cluster.nodes[voter_id]) for voter_id in VOTERS]
        found.clear()
        found.update(-1 if state is None else state.leader_id for state in states)
        return len(found) == 1 and found <= set(VOTERS)

    wait_for(is_settled, "one leader of the quorum")
    (leader_id,) = found
    return leader_id


def test_no_living_broker_is_fenced_with_the_active_controller_and_no_write_fails(tmp_path: Path) -> None:
    generator = draw_generator(__file__)
    with LocalCluster(tmp_path / "cluster", node_count=6) as cluster:
        world = ReplicatedCluster(cluster, assignment=[(4, 5, 6), (5, 6, 4), (6, 4, 5)])
        addresses = [cluster.nodes[one].address for one in BROKERS]
        with world.writer() as writer:
            number = 0
            while number < REPETITIONS:
                paused_id = active_id(cluster)
                for other in VOTERS:
                    if other != paused_id:
                        # The brokers that followed it follow the active controller now.
                        cluster.restart_node(other)
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                # The phase is part of the fault.
                clock.pause((number + generator.random()) * PERIOD_S / REPETITIONS)
                if active_id(cluster) != paused_id:
                    # On a busy machine it stood still for long enough by itself, and another one leads.
                    continue
                cluster.pause_node(paused_id)
                created = create_topic(addresses[number % 3], f"while-silent-{number}", {0: BROKERS})
                assert ErrorCode(int(created.error_code)) is ErrorCode.NONE, created.error_message
                # Brokers without a heartbeat since are fenced with it.
                wait_for(lambda: all(paused_id not in brokers(one) for one in addresses), "it is fenced")  # noqa: B023 - waited for here
                assert all(set(BROKERS) <= brokers(one) for one in addresses)
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                cluster.resume_node(paused_id)
                wait_for(lambda: all(paused_id in brokers(one) for one in addresses), "it is let in again")  # noqa: B023
                number += 1
        world.check(writer)
        logs = "".join(node.log.read_text() for node in cluster.nodes.values())
        for broker_id in BROKERS:
            assert not re.search(rf"Fencing broker because .*: broker={broker_id}\b", logs)
    say(REPETITIONS, "pauses,", len(writer.acknowledged_s), "records acknowledged")
