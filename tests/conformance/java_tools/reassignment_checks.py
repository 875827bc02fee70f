"""kafka-reassign-partitions: a plan generated, carried out, watched, throttled, taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .replicated_tools import Replicas, ReplicatedTools
from .tools import require

TOOL: Final = "reassign-partitions"
ALL_NODES: Final = "1,2,3"
RECORD_COUNT: Final = 300
ABSENT_BROKER: Final = 4711
# A follower of Apache Kafka fetches a MiB, and the next one when that has left the eleven seconds that are averaged:
# this takes minutes.
SLOW: Final = 1_000
LOAD: Final = ("--num-records", 40_000, "--record-size", 1_000, "--throughput", -1)


def reassign_generate(there: ReplicatedTools) -> None:
    topic = there.new_topic((1, 2), (2, 3), (3, 1))
    topics = there.write("topics", {"version": 1, "topics": [{"topic": topic}]})
    asked = ("--generate", "--topics-to-move-json-file", topics)
    output = there(TOOL, *asked, "--broker-list", ALL_NODES)
    current, proposed = map(_replicas, _plans(output))
    require(current == {0: (1, 2), 1: (2, 3), 2: (3, 1)}, "not the current replicas", output)
    require(all(len(set(replicas)) == 2 for replicas in proposed.values()), "not two replicas each", output)
    require(sorted(replicas[0] for replicas in proposed.values()) == [1, 2, 3], "leaders are not spread", output)
    output = there(TOOL, *asked, "--broker-list", "1", check=False)
    require(
        "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered" in output,
        "two replicas on one broker",
        output,
    )


def reassign_life(there: ReplicatedTools) -> None:
    """Replicas move, one is added, one is taken away; and back again by what the tool said before."""
    before: dict[int, tuple[int, ...]] = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    after: dict[int, tuple[int, ...]] = {0: (3, 2), 1: (2, 3, 1), 2: (1,)}
    topic = there.new_topic(*before.values())
    there.tools.produce(topic, RECORD_COUNT)
    ends = there.tools.end_offsets(topic)
    output = _execute(there, topic, "plan", after)
    (rollback,) = _plans(output)
    require(_replicas(rollback) == before, "not the replicas before", output)
    require(
        f"Successfully started partition reassignments for {topic}-0,{topic}-1,{topic}-2" in output, "no start", output
    )
    _wait_completed(there, topic, "plan", after)
    require(there.described_replicas(topic) == after, "not the replicas that were asked for")
    there.wait_in_sync(topic)
    require(there.tools.end_offsets(topic) == ends, "the end offsets are others")
    for partition, end in enumerate(ends):
        if end:
            require(len(there.tools.consume(topic, partition, end)) == end, "not all records are there")
    gone = [there.folder(1, topic, 0), there.folder(3, topic, 2)]
    there.wait(lambda: not any(folder.exists() for folder in gone), "what moved away is still there")
    require(f"{topic}-" not in there(TOOL, "--list"), "still listed")
    output = there(TOOL, "--cancel", "--reassignment-json-file", _plan(there, topic, "plan", after))
    require("None of the specified partition reassignments are active." in output, "something was cancelled", output)
    there(TOOL, "--execute", "--reassignment-json-file", there.write("rollback", rollback))
    _wait_completed(there, topic, "back", before)
    require(there.described_replicas(topic) == before, "not the replicas of the beginning")


def reassign_refusals(there: ReplicatedTools) -> None:
    topic = there.new_topic((1, 2))
    for what, replicas, options, said in (
        ("stranger", (1, ABSENT_BROKER), (), f"Unknown broker id {ABSENT_BROKER}"),
        ("twice", (1, 1), (), f"Partition replica lists may not contain duplicate entries: {topic}-0 contains"),
        (
            "more",
            (1, 2, 3),
            ("--disallow-replication-factor-change",),
            f"Error reassigning partition(s):\n{topic}-0: The replication factor is changed from 2 to 3",
        ),
    ):
        output = _execute(there, topic, what, {0: replicas}, *options, check=False)
        require(said in output, f"{what}: not refused so: {said}", output)
    output = _execute(there, topic, "absent", {7: (1, 2)}, check=False)
    require(f"Unable to find partition: {topic}-7" in output, "a partition that is not there", output)
    require(there.described_replicas(topic) == {0: (1, 2)}, "something was changed")


def reassign_throttled(there: ReplicatedTools) -> None:
    """A move so slow that it can be looked at, made faster, and cancelled."""
    topic = there.new_topic((1, 2))
    server = ("--producer-props", f"bootstrap.servers={there.tools.bootstrap}", "acks=all")
    there.tools.run("producer-perf-test", "--topic", topic, *LOAD, *server)
    moved = {0: (3, 2)}
    plan = _plan(there, topic, "plan", moved)
    output = _execute(there, topic, "plan", moved, "--throttle", SLOW)
    require(f"The inter-broker throttle limit was set to {SLOW} B/s" in output, "no throttle", output)
    # Few questions: on a busy machine each takes as long as the move of several MiB.
    output = there(TOOL, "--list")
    require(f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1." in output, "not listed as it is", output)
    output = there(TOOL, "--verify", "--preserve-throttles", "--reassignment-json-file", plan, check=False)
    require(f"Reassignment of partition {topic}-0 is still in progress." in output, "not in progress", output)
    output = there(TOOL, "--execute", "--reassignment-json-file", plan, check=False)
    require("Cannot execute because there is an existing partition assignment." in output, "executed twice", output)
    output = _execute(there, topic, "plan", moved, "--additional", "--throttle", SLOW * 2)
    require(f"The inter-broker throttle limit was set to {SLOW * 2} B/s" in output, "no other throttle", output)
    output = there(TOOL, "--cancel", "--reassignment-json-file", plan)
    require(f"Successfully cancelled partition reassignment for: {topic}-0" in output, "not cancelled", output)
    _require_no_throttles(there, topic)
    there.wait_in_sync(topic)
    # In the order of the move, without what it was to add.
    require(there.described_replicas(topic) == {0: (2, 1)}, "not the replicas of the beginning")
    there.wait(lambda: not there.folder(3, topic).exists(), "what was fetched so far is still there")


def reassign_preserving_throttles(there: ReplicatedTools) -> None:
    topic, moved = there.new_topic((1, 2)), {0: (2, 3)}
    there.tools.produce(topic, RECORD_COUNT)
    _execute(there, topic, "plan", moved, "--throttle", 10_000_000)
    _wait_completed(there, topic, "plan", moved, "--preserve-throttles")
    _require_throttles(there, topic, leaders="0:1,0:2", followers="0:3", rate=10_000_000)
    output = there(TOOL, "--verify", "--reassignment-json-file", _plan(there, topic, "plan", moved))
    require(f"Clearing broker-level throttles on brokers {ALL_NODES}" in output, "brokers are not cleared", output)
    require(f"Clearing topic-level throttles on topic {topic}" in output, "the topic is not cleared", output)
    _require_no_throttles(there, topic)


def move(there: ReplicatedTools, topic: str, wanted: Mapping[int, Replicas]) -> None:
    """Returns once it is done."""
    _execute(there, topic, "plan", wanted)
    _wait_completed(there, topic, "plan", wanted)


def _plan(there: ReplicatedTools, topic: str, what: str, wanted: Mapping[int, Replicas]) -> str:
    partitions = [{"topic": topic, "partition": number, "replicas": replicas} for number, replicas in wanted.items()]
    return there.write(what, {"version": 1, "partitions": partitions})


def _execute(
    there: ReplicatedTools,
    topic: str,
    what: str,
    wanted: Mapping[int, Replicas],
    *options: str | int,
    check: bool = True,
) -> str:
    plan = _plan(there, topic, what, wanted)
    return there(TOOL, "--execute", "--reassignment-json-file", plan, *options, check=check)


def _wait_completed(
    there: ReplicatedTools, topic: str, what: str, wanted: Mapping[int, Replicas], *options: str
) -> None:
    plan = _plan(there, topic, what, wanted)

    def completed() -> bool:
        output = there(TOOL, "--verify", "--reassignment-json-file", plan, *options)
        return all(f"Reassignment of partition {topic}-{number} is completed." in output for number in wanted)

    there.wait(completed, f"the reassignment of {topic} is not completed")


def _require_throttles(there: ReplicatedTools, topic: str, *, leaders: str, followers: str, rate: int) -> None:
    described = there("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    for key, value in (("leader", leaders), ("follower", followers)):
        require(f"{key}.replication.throttled.replicas={value} " in described, f"not the {key}s {value}", described)
    described = there("configs", "--describe", "--entity-type", "brokers", "--entity-name", 3)
    for key in ("leader", "follower"):
        require(f"{key}.replication.throttled.rate={rate} " in described, f"not the {key}'s rate", described)


def _require_no_throttles(there: ReplicatedTools, topic: str) -> None:
    _wait_no_throttles(there, "--entity-type", "topics", "--entity-name", topic)
    _wait_no_throttles(there, "--entity-type", "brokers", "--entity-name", 3)


def _wait_no_throttles(there: ReplicatedTools, *entity: str | int) -> None:
    there.wait(
        lambda: ".replication.throttled." not in there("configs", "--describe", *entity),
        f"{entity[-1]} keeps throttles",
    )


def _plans(output: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def _replicas(plan: Mapping[str, Any]) -> dict[int, tuple[int, ...]]:
    return {entry["partition"]: tuple(entry["replicas"]) for entry in plan["partitions"]}


CHECKS: Final = (
    reassign_generate,
    reassign_life,
    reassign_refusals,
    reassign_throttled,
    reassign_preserving_throttles,
)
