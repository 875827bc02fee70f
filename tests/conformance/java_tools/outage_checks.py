"""What the tools say and do while a node is gone."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from .record_checks import events
from .replicated_tools import ReplicatedTools
from .tools import require

RECORD_COUNT: Final = 12_000
# The leader is killed when a part of the records is there, and the producer still has seconds to go.
RECORDS_PER_SECOND: Final = 1_000
KILL_AT: Final = 2_000
# By itself the tool gives up a batch at the first error.
PATIENT: Final = {"retries": 2_147_483_647, "enable.idempotence": "true", "delivery.timeout.ms": 120_000}
FLAGS: Final = (
    "--under-replicated-partitions",
    "--unavailable-partitions",
    "--at-min-isr-partitions",
    "--under-min-isr-partitions",
)


def outage_topics_described(there: ReplicatedTools) -> None:
    """The four lists of kafka-topics, for topics that a lost node harms more and less."""
    unharmed = there.new_topic((1, 2), suffix="-unharmed")
    fewer = there.new_topic((3, 1, 2), suffix="-fewer")
    at_least = there.new_topic((3, 1, 2), suffix="-least", min_insync_replicas="2")
    too_few = there.new_topic((3, 1, 2), suffix="-too-few", min_insync_replicas="3")
    gone = there.new_topic((3,), suffix="-gone")
    topics = (unharmed, fewer, at_least, too_few, gone)

    def lists() -> dict[str, dict[str, list[str]]]:
        return {flag: there.states(flag) for flag in FLAGS}

    def named(flag: str) -> set[str]:
        """The topics of a list, by what their names end with."""
        found = found_lists[flag]
        return {topic.removeprefix(f"{there.tools.name}-") for topic in topics if topic in found}

    found_lists = lists()
    require(named("--under-replicated-partitions") == set(), "under-replicated before", str(found_lists))
    require(named("--unavailable-partitions") == set(), "unavailable before", str(found_lists))
    require(named("--at-min-isr-partitions") == {"too-few", "gone"}, "at the minimum before", str(found_lists))
    there.kill(3)
    for topic in (fewer, at_least, too_few):
        there.wait_in_sync_replicas(topic, (1, 2))
    there.wait_leader(gone, -1)
    found_lists = lists()
    for flag, expected in zip(
        FLAGS, ({"fewer", "least", "too-few", "gone"}, {"gone"}, {"least"}, {"too-few", "gone"}), strict=True
    ):
        require(named(flag) == expected, f"not {expected} with {flag}", str(found_lists))
    described = there.states()
    for topic, state in (
        (fewer, "Leader: 1 Replicas: 3,1,2 Isr: 1,2 Elr: LastKnownElr:"),
        (at_least, "Leader: 1 Replicas: 3,1,2 Isr: 1,2 Elr: LastKnownElr:"),
        (too_few, "Leader: 1 Replicas: 3,1,2 Isr: 1,2 Elr: 3 LastKnownElr:"),
        (gone, "Leader: none Replicas: 3 Isr: Elr: 3 LastKnownElr: 3"),
    ):
        expected_states = [f"Topic: {topic} Partition: 0 {state}"]
        require(described.get(topic) == expected_states, f"not {state}", str(described))
    output = there("get-offsets", "--topic", gone, check=False)
    require(f"Skip getting offsets for topic-partition {gone}-0" in output, "offsets of what has no leader", output)
    there.start(3)
    for topic in topics:
        there.wait_in_sync(topic)
    found_lists = lists()
    require(named("--under-replicated-partitions") == set(), "under-replicated at the end", str(found_lists))


def outage_verifiable_producer(there: ReplicatedTools) -> None:
    """The leader is killed while kafka-verifiable-producer sends: all is acknowledged, once, and there."""
    topic = there.new_topic((1, 2, 3), min_insync_replicas="2")
    properties = there.tools.work / f"{there.tools.name}.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in PATIENT.items()))

    def send() -> str:
        return there(
            "verifiable-producer",
            *("--topic", topic, "--max-messages", RECORD_COUNT, "--throughput", RECORDS_PER_SECOND, "--acks", -1),
            *("--command-config", str(properties)),
        )

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        there.wait(lambda: sending.done() or there.end_offset(topic) >= KILL_AT, "the producer does not get far")
        require(not sending.done(), "the producer ended before the leader was killed")
        leader = there.leaders(topic)[0]
        there.kill(leader)
        output = sending.result()
    said = events(output)
    errors = [event for event in said if event["name"] == "producer_send_error"]
    require(not errors, "some were not sent", str(errors[:5]))
    acknowledged = {event["offset"]: event["value"] for event in said if event["name"] == "producer_send_success"}
    require(len(acknowledged) == RECORD_COUNT, f"acknowledged {len(acknowledged)} of {RECORD_COUNT}", output)
    require(there.leaders(topic)[0] != leader, "the killed leader leads")
    there.start(leader)
    there.wait_in_sync(topic)
    shown = there(
        "console-consumer",
        *("--topic", topic, "--partition", 0, "--offset", "earliest"),
        *("--property", "print.offset=true", "--max-messages", RECORD_COUNT, "--timeout-ms", 20_000),
    )
    stored = {int(offset): value for offset, value in re.findall(r"^Offset:(\d+)\t(\d+)$", shown, re.MULTILINE)}
    require(stored == acknowledged, "what is stored is not what was acknowledged")
    require(sorted(map(int, stored.values())) == list(range(RECORD_COUNT)), "not every record once")
    require(there.end_offset(topic) == RECORD_COUNT, "more is stored than was sent")


CHECKS: Final = (outage_topics_described, outage_verifiable_producer)
