"""The folder of a run that never took place: a small model of three nodes, clients and faults, drawn from a seed."""

from __future__ import annotations

import bisect
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from penstock.chaos.histories.cluster_sample import ClusterSample, PartitionSample
from penstock.chaos.histories.history_file import write_history
from penstock.chaos.histories.operation import NEMESIS, EventType, Header, Operation
from penstock.chaos.histories.run_folder import RunFolder, RunRecord

SECOND: Final = 1_000_000_000
MS: Final = 1_000_000
NODES: Final = (1, 2, 3)

# Time, type, process, function, value, error, final.
Event: TypeAlias = tuple[int, EventType, int | str, str, Any, str | None, bool]


@dataclass(frozen=True)
class PlannedFault:
    kind: str
    begin_s: float
    end_s: float
    node: int
    data: dict[str, Any]


@dataclass
class Partition:
    leader: int
    epoch: int = 0
    isr: list[int] = field(default_factory=lambda: list(NODES))
    # (appended at, value), in the order of their offsets.
    records: list[tuple[int, int]] = field(default_factory=list)


def faults_of(duration_s: float) -> list[PlannedFault]:
    part = duration_s / 10
    return [
        PlannedFault(
            "partition",
            part,
            1.8 * part,
            1,
            {"selector": "leaders", "links": [["1", "2"], ["1", "3"]], "mode": "silence"},
        ),
        PlannedFault(
            "slow-link",
            2.6 * part,
            3.4 * part,
            2,
            {"selector": "one", "nodes": ["2"], "latency_ms": 80, "jitter_ms": 30},
        ),
        PlannedFault("kill", 4.2 * part, 5.0 * part, 2, {"selector": "one", "nodes": ["2"]}),
        PlannedFault("pause", 5.8 * part, 6.3 * part, 3, {"selector": "one", "nodes": ["3"]}),
        PlannedFault("clock-strobe", 6.1 * part, 6.9 * part, 1, {"selector": "one", "nodes": ["1"], "offset_ms": 400}),
        PlannedFault("power-loss", 7.4 * part, 7.9 * part, 1, {"selector": "one", "nodes": ["1"]}),
    ]


def make_run_folder(
    folder: Path, *, seed: int = 1, duration_s: int = 60, partitions: int = 3, rate: int = 40, is_anomalous: bool = True
) -> None:
    """`rate` is sends a second of each of three producers. With `is_anomalous`, one acknowledged record is lost when a
    node loses power."""
    rng = random.Random(seed)
    faults = faults_of(duration_s * 0.9)
    keys = [f"orders-{number}" for number in range(partitions)]
    world = {key: Partition(NODES[number % 3]) for number, key in enumerate(keys)}
    raw: list[Event] = []
    leaderships = _leaderships(world, faults, rng)
    lost = _send_all(raw, world, leaderships, faults, rng, duration_s, rate, is_anomalous)
    _poll_all(raw, world, rng, duration_s, lost)
    for fault in faults:
        begin, end = int(fault.begin_s * SECOND), int(fault.end_s * SECOND)
        raw.append((begin, "info", NEMESIS, fault.kind, {"begin": fault.data}, None, False))
        raw.append((end, "info", NEMESIS, fault.kind, {"end": fault.data}, None, False))
        if "links" in fault.data:
            link = fault.data["links"][0]
            told = {"link": link, "works": False, "during": fault.kind}
            raw.append((begin + 300 * MS, "info", NEMESIS, "canary", told, None, False))
            raw.append(
                (end + 300 * MS, "info", NEMESIS, "canary", {"link": link, "works": True, "during": None}, None, False)
            )
    raw.sort(key=lambda event: event[0])
    operations = [
        Operation(index, kind, process, time, f, value, error, final)
        for index, (time, kind, process, f, value, error, final) in enumerate(raw)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_history(folder / "history.jsonl", Header(workload="queue", seed=seed, nodes=3), operations)
    samples = _samples(world, leaderships, faults, duration_s, lost, rng)
    (folder / "cluster.jsonl").write_bytes(b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples))
    (folder / "verdict.json").write_text(json.dumps(_verdict(operations, lost)))
    record = RunRecord(
        workload="queue",
        nemeses=tuple(f"{fault.kind}:{fault.data['selector']}" for fault in faults),
        seconds=duration_s,
        nodes=3,
        seed=seed,
        cluster="penstock",
        version="0",
    )
    RunFolder(folder).write_record(record)


# By partition: (from seconds, leader or None, epoch, ISR).
Leaderships = dict[str, list[tuple[float, int | None, int, list[int]]]]


def _leaderships(world: dict[str, Partition], faults: list[PlannedFault], rng: random.Random) -> Leaderships:
    result: Leaderships = {}
    for key, partition in world.items():
        leader, epoch = partition.leader, 0
        told: list[tuple[float, int | None, int, list[int]]] = [(0.0, leader, epoch, list(NODES))]
        for fault in faults:
            if fault.kind not in ("partition", "kill", "pause", "power-loss"):
                continue
            isr = [node for node in NODES if node != fault.node]
            if leader == fault.node:
                told.append((fault.begin_s + 0.4, None, epoch, [fault.node]))
                leader, epoch = rng.choice(isr), epoch + 1
                told.append((fault.begin_s + 1.6 + rng.random(), leader, epoch, isr))
            else:
                told.append((fault.begin_s + 1.2 + rng.random(), leader, epoch, isr))
            told.append((fault.end_s + 1 + rng.random(), leader, epoch, list(NODES)))
            if rng.random() < 0.6:
                leader, epoch = partition.leader, epoch + 1
                told.append((fault.end_s + 2.5 + rng.random(), leader, epoch, list(NODES)))
        result[key] = told
    return result


def _at(leaderships: Leaderships, key: str, at_s: float) -> tuple[int | None, int, list[int]]:
    found = leaderships[key][0]
    for one in leaderships[key]:
        if one[0] <= at_s:
            found = one
    return found[1], found[2], found[3]


def _send_all(
    raw: list[Event],
    world: dict[str, Partition],
    leaderships: Leaderships,
    faults: list[PlannedFault],
    rng: random.Random,
    duration_s: int,
    rate: int,
    is_anomalous: bool,
) -> tuple[str, int] | None:
    """(key, value) of the record that is lost."""
    keys = list(world)
    lost: tuple[str, int] | None = None
    numbers = dict.fromkeys(keys, 0)
    sends: list[tuple[int, int, str]] = []
    for slot in range(3):
        process = slot
        at = rng.random() / rate
        while at < duration_s * 0.9:
            key = rng.choice(keys)
            sends.append((int(at * SECOND), slot, key))
            value = numbers[key]
            numbers[key] += 1
            leader, _, isr = _at(leaderships, key, at)
            latency_ms = 2 + rng.expovariate(1 / 1.5) + (40 if len(isr) < 3 and rng.random() < 0.1 else 0)
            outcome: EventType = "ok"
            error = None
            slow = [fault for fault in faults if fault.begin_s <= at <= fault.end_s]
            if any(fault.kind.startswith("slow") for fault in slow):
                latency_ms += rng.gauss(80, 12)
            down = next((fault for fault in slow if fault.node == leader and not fault.kind.startswith("clock")), None)
            if leader is None or (down is not None and at < down.begin_s + 2.5 and not down.kind.startswith("slow")):
                latency_ms += rng.uniform(400, 2600)
                if rng.random() < 0.22:
                    outcome, error = (
                        ("info", "_MSG_TIMED_OUT") if rng.random() < 0.7 else ("fail", "NOT_ENOUGH_REPLICAS")
                    )
            begin = int(at * SECOND)
            end = begin + int(latency_ms * MS)
            raw.append((begin, "invoke", process, "send", [["send", key, value]], None, False))
            told: Any = [["send", key, value]]
            if outcome == "ok" or (outcome == "info" and rng.random() < 0.5):
                partition = world[key]
                offset = len(partition.records)
                power = faults[-1]
                is_lost = is_anomalous and lost is None and power.begin_s - 0.6 < at < power.begin_s - 0.3
                if is_lost:
                    lost = key, value
                partition.records.append((end, value))
                if outcome == "ok":
                    told = [["send", key, [offset, value]]]
            raw.append((end, outcome, process, "send", told, error, False))
            if outcome == "info":
                process += 5
            at = end / SECOND + rng.expovariate(rate)
    for partition in world.values():
        partition.records.sort()
    # Offsets as the log has them, now that records are in the order of their ends.
    offsets = {(key, value): n for key, partition in world.items() for n, (_, value) in enumerate(partition.records)}
    for number, (time, kind, who, f, told, error, final) in enumerate(raw):
        if f == "send" and kind == "ok":
            key, (_, value) = told[0][1], told[0][2]
            raw[number] = (time, kind, who, f, [["send", key, [offsets[key, value], value]]], error, final)
    return lost


def _poll_all(
    raw: list[Event],
    world: dict[str, Partition],
    rng: random.Random,
    duration_s: int,
    lost: tuple[str, int] | None,
) -> None:
    keys = list(world)
    for process, mine in ((3, keys[::2]), (4, keys[1::2] or keys)):
        positions = dict.fromkeys(mine, 0)
        raw.append((1, "invoke", process, "assign", mine, None, False))
        raw.append((MS, "ok", process, "assign", mine, None, False))
        at = 0.05
        while at < duration_s * 0.99:
            final = at > duration_s * 0.92
            begin = int(at * SECOND)
            wait = rng.uniform(0.02, 0.25)
            end = begin + int(wait * SECOND)
            read: dict[str, list[list[int]]] = {}
            for key in mine:
                records = world[key].records
                start = positions[key]
                while positions[key] < len(records) and records[positions[key]][0] < end:
                    positions[key] += 1
                found = [
                    [offset, records[offset][1]]
                    for offset in range(start, positions[key])
                    if (key, records[offset][1]) != lost
                ]
                if found:
                    read[key] = found
            raw.append((begin, "invoke", process, "poll", [["poll"]], None, final))
            raw.append((end, "ok", process, "poll", [["poll", read]], None, final))
            at = end / SECOND + rng.uniform(0.001, 0.02)


def _samples(
    world: dict[str, Partition],
    leaderships: Leaderships,
    faults: list[PlannedFault],
    duration_s: int,
    lost: tuple[str, int] | None,
    rng: random.Random,
) -> list[ClusterSample]:
    samples = []
    held: dict[tuple[str, int], int] = {}
    watermarks: dict[str, int] = {}
    controller = 1
    at = 0.1
    while at < duration_s:
        states = {str(node): "up" for node in NODES}
        cut = set()
        for fault in faults:
            if fault.begin_s <= at <= fault.end_s:
                name = fault.kind
                if name in ("kill", "power-loss"):
                    states[str(fault.node)] = "down"
                elif name == "pause":
                    states[str(fault.node)] = "paused"
                elif name == "partition":
                    cut.add(fault.node)
        if states[str(controller)] != "up" or controller in cut:
            controller = next(node for node in NODES if states[str(node)] == "up" and node not in cut)
        partitions = {}
        for key, partition in world.items():
            leader, epoch, isr = _at(leaderships, key, at)
            end = bisect.bisect(partition.records, (int(at * SECOND), 1 << 60))
            ends = {}
            for node in NODES:
                is_away = node in cut or states[str(node)] != "up"
                lag = rng.choice((0, 0, 0, 1))
                held[key, node] = held.get((key, node), 0) if is_away else end - (0 if node == leader else lag)
                is_back = node == faults[-1].node and faults[-1].end_s < at < faults[-1].end_s + 1
                if is_back and lost is not None and lost[0] == key:
                    held[key, node] = next(n for n, (_, value) in enumerate(partition.records) if value == lost[1]) - 3
                if states[str(node)] == "up":
                    ends[str(node)] = held[key, node]
            watermarks[key] = max(watermarks.get(key, 0), min([held[key, node] for node in isr], default=0))
            hw = None if leader is None else watermarks[key]
            partitions[key] = PartitionSample(leader, epoch, isr, hw, ends)
        samples.append(ClusterSample(int(at * SECOND), controller, states, partitions))
        at += 0.5
    return samples


def _verdict(operations: list[Operation], lost: tuple[str, int] | None) -> dict[str, Any]:
    if lost is None:
        return {"valid": "valid", "statistics": {"operations": {"send": {"ok": 1}}}}
    key, value = lost
    sent = next(
        operation
        for operation in operations
        if operation.f == "send" and operation.type == "ok" and operation.value[0][2][1] == value
        if operation.value[0][1] == key
    )
    offset = sent.value[0][2][0]
    passing = next(
        operation
        for operation in operations
        if operation.f == "poll" and operation.type == "ok"
        if any(read > offset for read, _ in operation.value[0][1].get(key, []))
    )
    return {
        "valid": "anomalies",
        "findings": [
            {
                "type": "lost-write",
                "allowed": False,
                "key": key,
                "message": f"{value} was acknowledged at offset {offset}, and reads went past it without it",
                "operations": [sent.index, passing.index],
                "detail": {"value": value, "offset": offset},
            },
            {
                "type": "unseen",
                "allowed": True,
                "key": key,
                "message": f"1 record of {key} was never read",
                "operations": [sent.index],
                "why_allowed": "a node lost power, which goes beyond what min.insync.replicas promises",
            },
        ],
        "counts": {"lost-write": 1, "unseen": 1},
        "statistics": {"queue": {"acknowledged": 1, "longest-stall-ms": 2600}},
    }
