"""The story of one record."""

from __future__ import annotations

from typing import Any

from penstock.chaos.checkers.finding import Finding
from penstock.chaos.histories.cluster_sample import ClusterSample, PartitionSample
from penstock.chaos.histories.operation import EventType, Operation, Pair
from penstock.chaos.report.fault_band import FaultBand
from penstock.chaos.report.story import Story, chosen_records, story


class Events:
    """Pairs with indices that count up."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []

    def add(self, begin: int, end: int | None, f: str, asked: Any, told: Any, outcome: EventType, process: int) -> int:
        index = 2 * len(self.pairs)
        invocation = Operation(index, "invoke", process, begin, f, asked)
        completion = None if end is None else Operation(index + 1, outcome, process, end, f, told)
        self.pairs.append(Pair(invocation, completion))
        return index + 1

    def send(self, begin: int, end: int | None, value: int, offset: int | None, outcome: EventType = "ok") -> int:
        told = value if offset is None else [offset, value]
        return self.add(begin, end, "send", [["send", "t-0", value]], [["send", "t-0", told]], outcome, 0)

    def poll(self, begin: int, end: int, *records: tuple[int, int], process: int = 1) -> int:
        told = [["poll", {"t-0": [list(record) for record in records]}]]
        return self.add(begin, end, "poll", [["poll"]], told, "ok", process)


def sample(time: int, hw: int, **ends: int) -> ClusterSample:
    return ClusterSample(time, 1, {}, {"t-0": PartitionSample(1, 0, [1], hw, {n[1:]: end for n, end in ends.items()})})


def told(events: Events, samples: list[ClusterSample], value: int) -> Story:
    return story(events.pairs, samples, key="t-0", value=value, why="")


def texts(one: Story) -> list[str]:
    return [f"{step.actor} {step.text}" for step in one.steps]


def test_a_record_is_sent_appended_fetched_committed_acknowledged_and_read() -> None:
    events = Events()
    events.send(100, 190, 7, 5)
    events.poll(200, 210, (5, 7))
    samples = [sample(50, 5, n1=5, n2=5), sample(150, 5, n1=6, n2=5), sample(180, 6, n1=6, n2=6)]
    one = told(events, samples, 7)
    assert texts(one) == [
        "process 0 sent it",
        "node 1 as leader, has it in its log",
        "node 2 fetched it",
        "high watermark passed it: consumers may read it",
        "process 0 got its acknowledgement with offset 5",
        "process 1 read it at offset 5",
    ]
    assert (one.is_good, one.end) == (True, "Read by 1 process.")
    leader = one.steps[1]
    # Between the invocation, which is later than the last sample without it, and the first sample with it.
    assert (leader.after_ns, leader.by_ns) == (100, 150)


def test_a_log_that_loses_the_record_and_a_read_that_goes_past_it_are_told() -> None:
    events = Events()
    events.send(100, 110, 7, 5)
    events.poll(120, 130, (4, 1))
    index = events.poll(400, 410, (6, 9))
    samples = [sample(50, 5, n1=5), sample(150, 6, n1=6), sample(300, 6, n1=3), sample(350, 6, n1=4)]
    one = told(events, samples, 7)
    assert "node 1 has a log that ends at 3 again: the record is cut off" in texts(one)
    assert "process 1 read offset 4, then 6, and nothing at 5" in texts(one)
    assert one.steps[-1].index == index
    assert (one.is_good, one.end) == (False, "Acknowledged, and no poll of the run returned it.")


def test_another_record_at_its_offset_is_told() -> None:
    events = Events()
    events.send(100, 110, 7, 5)
    events.poll(120, 130, (4, 1), (5, 8), (6, 9))
    assert "process 1 read 8 at its offset 5" in texts(told(events, [], 7))


def test_a_record_that_no_client_reads_is_not_missing() -> None:
    events = Events()
    events.send(100, 150, 7, 5)
    assert (told(events, [], 7).is_good, told(events, [], 7).end) == (True, "No client reads this partition.")


def test_a_record_whose_outcome_is_unknown_may_be_missing() -> None:
    events = Events()
    events.send(100, 150, 7, None, "info")
    events.poll(200, 210, (5, 8))
    one = told(events, [], 7)
    assert texts(one) == ["process 0 sent it", "process 0 does not know its outcome"]
    assert one.is_good


def test_a_record_of_each_anomaly_is_chosen_in_their_order() -> None:
    events = Events()
    first, second = events.send(100, 110, 7, 5), events.send(120, 130, 8, 6)
    read = events.poll(200, 210, (9, 11))
    findings = [
        Finding(type="lost-write", message="", key="t-0", operations=(first,)),
        Finding(type="duplicate", message="", key="t-0", operations=(read,)),
        Finding(type="stall", message=""),
        Finding(type="lost-write", message="", key="t-1", detail={"value": [1, 2]}),
        Finding(type="unseen", message="", key="t-0", operations=(second,), allowed=True),
    ]
    chosen = chosen_records(events.pairs, findings, [], limit=9)
    assert [(key, value) for key, value, _ in chosen] == [("t-0", 7), ("t-0", 11), ("t-1", (1, 2)), ("t-0", 8)]
    assert len(chosen_records(events.pairs, findings, [], limit=1)) == 1


def test_without_an_anomaly_the_record_that_a_fault_held_up_longest_is_chosen() -> None:
    events = Events()
    events.send(0, 90, 1, 0)
    events.send(100, 120, 2, 1)
    events.send(100, 180, 3, 2)
    band = FaultBand(number=1, kind="kill", begin_ns=110, end_ns=150, is_ended=True, fault={}, proof="no canary")
    ((key, value, why),) = chosen_records(events.pairs, [], [band], limit=3)
    assert (key, value) == ("t-0", 3)
    assert "kill" in why
    assert chosen_records(events.pairs, [], [], limit=3) == []


def test_a_record_that_failed_and_was_read_is_not_well() -> None:
    events = Events()
    events.send(100, 110, 7, None, "fail")
    events.poll(120, 130, (5, 7))
    one = told(events, [], 7)
    assert (one.is_good, one.end) == (False, "It failed, and was read by 1 process all the same.")
