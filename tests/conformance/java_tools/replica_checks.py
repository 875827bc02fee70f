"""What the tools say of replicas where nothing is wrong: the same of each."""

from __future__ import annotations

import json
import re
from typing import Final

from .replicated_tools import ReplicatedTools
from .tools import require, values

RECORD_COUNT: Final = 500
LOG: Final = "00000000000000000000.log"
# It says nothing before its second report.
VERIFICATION_MS: Final = 1_000
_REPORT = re.compile(r"max lag is (\d+) for partition (\S+) at offset (\d+) among (\d+) partitions")


def replicas_log_dirs(there: ReplicatedTools) -> None:
    topic = there.new_topic((1, 2, 3), (2, 3, 1))
    there.tools.produce(topic, RECORD_COUNT)
    _wait_equal(there, topic, 0)
    _wait_equal(there, topic, 1)
    output = there("log-dirs", "--describe", "--topic-list", topic)
    described = json.loads(next((line for line in output.splitlines() if line.startswith("{")), "{}"))
    found = {
        broker["broker"]: {
            entry["partition"]: (entry["size"], entry["offsetLag"], entry["isFuture"])
            for directory in broker["logDirs"]
            for entry in directory["partitions"]
        }
        for broker in described["brokers"]
    }
    sizes = {f"{topic}-{number}": _size(there, topic, number) for number in (0, 1)}
    for node_id in there.nodes:
        expected = {partition: (size, 0, False) for partition, size in sizes.items()}
        require(found.get(node_id) == expected, f"node {node_id} does not have {expected}", output)
    output = there("log-dirs", "--describe", "--topic-list", topic, "--broker-list", "2")
    require('"broker":2' in output and '"broker":1' not in output, "not only node 2", output)


def replicas_dump_log(there: ReplicatedTools) -> None:
    """Every batch and record of a replica, with epochs and checksums, is that of the others."""
    topic = there.new_topic((1, 2, 3))
    for codec in ("none", "lz4", "zstd"):
        there.tools.produce(topic, RECORD_COUNT, "--compression-codec", codec)
    _wait_equal(there, topic, 0)
    files = [str(there.folder(node_id, topic) / LOG) for node_id in there.nodes]
    output = there.tools.run("dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(files))
    first, *others = (part.partition("\n")[2] for part in output.split("Dumping ")[1:])
    require(len(others) == len(there.nodes) - 1, "not a dump of each", output)
    require(all(other == first for other in others), "the dumps are not equal", output)
    payloads = re.findall(r"payload: (m\d+)", first)
    require(payloads == [*values(RECORD_COUNT)] * 3, "not what was produced", first)
    require("isvalid: false" not in first, "a checksum is wrong", first)


def replicas_verification(there: ReplicatedTools) -> None:
    """The tool fetches every replica as a follower would, and compares checksums up to the high watermarks."""
    topic = there.new_topic((1, 2, 3), (2, 3, 1))
    there.tools.produce(topic, RECORD_COUNT)
    output = there.tools.run_until(
        _REPORT,
        "replica-verification",
        *("--broker-list", there.tools.bootstrap, "--topics-include", topic),
        *("--time", "-2", "--report-interval-ms", VERIFICATION_MS),
    )
    match = _REPORT.search(output)
    require(match is not None, "no report", output)
    assert match is not None, "just required"
    require(match[1] == "0" and match[4] == "2", "a replica lags", output)
    require("has unmatched checksum" not in output and "is not the same" not in output, "replicas differ", output)


def replicas_offsets(there: ReplicatedTools) -> None:
    topic = there.new_topic((1, 2, 3), (2, 3, 1), (3, 1, 2))
    there.tools.produce(topic, RECORD_COUNT)
    require(sum(there.tools.end_offsets(topic)) == RECORD_COUNT, "not all records")
    for time in ("earliest", "-4"):
        output = there("get-offsets", "--topic-partitions", f"{topic}:0-2", "--time", time)
        found = [line for line in output.splitlines() if line.startswith(f"{topic}:")]
        require(found == [f"{topic}:0:0", f"{topic}:1:0"], f"not the first offsets with --time {time}", output)
    output = there("get-offsets", "--topic", topic, "--time", "latest-tiered")
    require(topic not in output, "an offset in tiered storage", output)


def _wait_equal(there: ReplicatedTools, topic: str, partition: int) -> None:
    def equal() -> bool:
        first, *others = ((there.folder(node_id, topic, partition) / LOG).read_bytes() for node_id in there.nodes)
        return all(other == first for other in others)

    there.wait(equal, f"the logs of {topic}-{partition} are not equal")


def _size(there: ReplicatedTools, topic: str, partition: int) -> int:
    return (there.folder(1, topic, partition) / LOG).stat().st_size


CHECKS: Final = (replicas_log_dirs, replicas_dump_log, replicas_verification, replicas_offsets)
