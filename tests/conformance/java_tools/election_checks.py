"""kafka-leader-election: preferred leaders, and a leader that was not in sync where there is no other."""

from __future__ import annotations

import re
from typing import Final

from .reassignment_checks import move
from .replicated_tools import ReplicatedTools
from .tools import require

TOOL: Final = "leader-election"
PREFERRED: Final = ("--election-type", "preferred")
UNCLEAN: Final = ("--election-type", "unclean")
RECORD_COUNT: Final = 100


def election_preferred(there: ReplicatedTools) -> None:
    """Named one by one, by a file, and all there are."""
    topic = there.new_topic((1, 2, 3), (1, 2, 3), (1, 2, 3))
    move(there, topic, dict.fromkeys(range(3), (2, 1, 3)))
    require(there.leaders(topic) == {0: 1, 1: 1, 2: 1}, "leaders changed with the order of replicas")
    first = ("--topic", topic, "--partition", 0)
    output = there(TOOL, *PREFERRED, *first)
    require(f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in output, "not 0", output)
    output = there(TOOL, *PREFERRED, *first)
    require(f"Valid replica already elected for partitions {topic}-0" in output, "elected again", output)
    file = there.write("partitions", {"partitions": [{"topic": topic, "partition": number} for number in (0, 1)]})
    output = there(TOOL, *PREFERRED, "--path-to-json-file", file)
    require(f"Successfully completed leader election (PREFERRED) for partitions {topic}-1" in output, "not 1", output)
    require(f"Valid replica already elected for partitions {topic}-0" in output, "elected again by a file", output)
    output = there(TOOL, *PREFERRED, "--all-topic-partitions")
    all_elected = rf"Successfully completed leader election \(PREFERRED\) for partitions .*\b{topic}-2\b"
    require(re.search(all_elected, output), "not 2", output)
    there.wait(lambda: there.leaders(topic) == {0: 2, 1: 2, 2: 2}, "not all are led by 2")
    require("Success" not in there(TOOL, *PREFERRED, "--all-topic-partitions"), "elected once more")
    output = there(TOOL, *UNCLEAN, *first)
    require(f"Valid replica already elected for partitions {topic}-0" in output, "elected uncleanly", output)
    output = there(TOOL, *PREFERRED, "--topic", topic, "--partition", 77, check=False)
    said = f"Error completing leader election (PREFERRED) for partition: {topic}-77: "
    require(f"{said}org.apache.kafka.common.errors.UnknownTopicOrPartitionException: " in output, "elected", output)


def election_unclean(there: ReplicatedTools) -> None:
    """A follower that lacks records leads only when it is asked for."""
    topic = there.new_topic((1, 2))
    election = ("--topic", topic, "--partition", 0)
    there.kill(2)
    there.wait_in_sync_replicas(topic, (1,))
    there.tools.produce(topic, RECORD_COUNT)
    there.kill(1)
    there.start(2)
    there.wait_leader(topic, -1)
    output = there(TOOL, *PREFERRED, *election, check=False)
    said = f"Error completing leader election (PREFERRED) for partition: {topic}-0: "
    require(f"{said}org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: " in output, "led", output)
    (state,) = there.states("--unavailable-partitions").get(topic, [""])
    require("Leader: none" in state, "not unavailable", state)
    output = there(TOOL, *UNCLEAN, *election)
    require(f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in output, "no leader", output)
    there.wait_leader(topic, 2)
    require(there.tools.end_offsets(topic) == [0], "it has what it never fetched")
    there.tools.produce(topic, 1)
    there.start(1)
    there.wait_in_sync(topic)
    require(there.tools.end_offsets(topic) == [1], "the former leader did not follow")


CHECKS: Final = (election_preferred, election_unclean)
