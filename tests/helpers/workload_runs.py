"""Runs of workloads on a cluster that is there, and what any history has to be like."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from waiting import wait_for

from penstock.chaos.histories.operation import History, Operation
from penstock.chaos.workloads.client_processes import ClientProcesses
from penstock.chaos.workloads.workload import Workload, create_topics
from penstock.client import clock
from penstock.local.cluster import LocalCluster


def run_workload(
    cluster: LocalCluster,
    workload: Workload,
    folder: Path,
    *,
    done: int,
    seed: int = 1,
    fault: Callable[[], None] = lambda: None,
) -> History:
    """Its history, once each client has completed so many operations, before and after the fault."""
    topic = f"{workload.name}-{seed}-{clock.monotonic_ns()}"
    create_topics(cluster.bootstrap, workload, topic, replicas=len(cluster.nodes))
    processes = ClientProcesses(
        workload, folder, bootstrap=lambda _: cluster.bootstrap, topic=topic, seed=seed,
        start_ns=clock.monotonic_ns(), options=("--pause-ms", "2"),
    )  # fmt: skip

    def wait_done(more: int) -> None:
        counts = _completed(processes)
        wait_for(
            lambda: all(_completed(processes)[client] >= counts[client] + more for client in range(len(processes))),
            lambda: f"each client completes {more} operations; by client {dict(_completed(processes))}",
        )

    with processes:
        wait_done(done)
        fault()
        wait_done(done)
        processes.drain()
    assert not processes.failures, "\n".join(processes.failures)
    return History(workload.header(seed=seed, nodes=len(cluster.nodes)), processes.history())


def _completed(processes: ClientProcesses) -> Counter[int]:
    """By client."""
    counts: Counter[int] = Counter()
    for operation in processes.history():
        if operation.type in ("ok", "fail"):
            counts[int(operation.process) % len(processes)] += 1
    return counts


def check_form(history: History) -> None:
    """A process does one thing at a time, and is gone after an unknown outcome."""
    pending: dict[int | str, Operation] = {}
    gone: set[int | str] = set()
    for operation in history.operations:
        if operation.type == "invoke":
            assert operation.process not in pending, f"two operations at a time: {operation}"
            assert operation.process not in gone, f"a process that had gone: {operation}"
            pending[operation.process] = operation
            continue
        invoked = pending.pop(operation.process)
        assert (invoked.f, invoked.final) == (operation.f, operation.final), f"{invoked} completed as {operation}"
        if operation.type == "info":
            gone.add(operation.process)


def sends_of(history: History, *, outcomes: Sequence[str] = ("ok",)) -> Iterator[tuple[str, int, int]]:
    """Key, offset and value of the sends with a known offset."""
    for pair in history.pairs():
        if pair.invocation.f in ("send", "txn") and pair.outcome in outcomes:
            for operation in pair.value:
                if operation[0] == "send" and isinstance(operation[2], list):
                    yield operation[1], *operation[2]


def final_reads(history: History) -> dict[int | str, set[tuple[str, int, Any]]]:
    """Key, offset and value of what each process polled in the end."""
    read: dict[int | str, set[tuple[str, int, Any]]] = defaultdict(set)
    for pair in history.pairs():
        if pair.invocation.final and pair.invocation.f == "poll" and pair.outcome == "ok":
            for _, polled in pair.value:
                for key, records in polled.items():
                    read[pair.invocation.process].update(
                        (key, offset, tuple(value) if isinstance(value, list) else value) for offset, value in records
                    )
    return read


def check_queue(history: History) -> None:
    """Each final reader saw everything that was acknowledged, where it was said to be, and nothing that was aborted."""
    sent, reads = set(sends_of(history)), final_reads(history)
    assert sent, "nothing was sent"
    assert reads, "nothing was read in the end"
    refused = {
        (operation[1], operation[2])
        for pair in history.pairs()
        if pair.invocation.f in ("send", "txn") and pair.outcome == "fail"
        for operation in pair.invocation.value
        if operation[0] == "send"
    }
    for process, read in reads.items():
        assert sent <= read, f"process {process} did not see {sorted(sent - read)[:5]} in the end"
        shown = {(key, value) for key, _, value in read}
        assert len(shown) == len(read), f"process {process} saw a value twice"
        assert not shown & refused, f"process {process} saw {sorted(shown & refused)[:5]}, which did not take place"


def check_lists(history: History) -> None:
    """All reads of a key are beginnings of one list, which in the end has everything that was committed, once."""
    reads: dict[str, list[list[int]]] = defaultdict(list)
    appended: dict[str, set[int]] = defaultdict(set)
    refused: set[int] = set()
    for pair in history.pairs():
        if pair.invocation.f != "txn":
            continue
        for kind, key, value in pair.value if pair.outcome == "ok" else pair.invocation.value:
            if kind == "append" and pair.outcome != "info":
                (appended[key] if pair.outcome == "ok" else refused).add(value)
            elif kind == "r" and pair.outcome == "ok":
                reads[key].append(value)
    assert any(appended.values()), "nothing was appended"
    for key, lists in reads.items():
        longest = max(lists, key=len)
        assert len(set(longest)) == len(longest), f"{key} has an element twice"
        assert all(longest[: len(one)] == one for one in lists), f"{key} was read in two orders"
        assert appended[key] <= set(longest), f"{key} lacks {sorted(appended[key] - set(longest))[:5]}"
        assert not refused & set(longest), f"{key} has {sorted(refused & set(longest))[:5]}, which were not committed"


def check_copies(history: History) -> None:
    """What a final reader saw of the output is the input, each of its records once."""
    reads = final_reads(history)
    inputs = [{(key, value) for key, _, value in read} for read in reads.values() if not _is_output(read)]
    outputs = [[value for _, _, value in read] for read in reads.values() if _is_output(read)]
    assert inputs, "the input was not read"
    assert outputs, "the output was not read"
    for output in outputs:
        assert len(set(output)) == len(output), "an input was copied twice"
        assert set(output) == inputs[0], f"not the input: {sorted(set(output) ^ inputs[0])[:5]}"


def _is_output(read: set[tuple[str, int, Any]]) -> bool:
    return any("-out-" in key for key, _, _ in read)


def check_group(history: History) -> None:
    """All that was acknowledged was polled by a member."""
    members = {pair.invocation.process for pair in history.pairs() if pair.invocation.f == "subscribe"}
    polled = {
        (key, offset, value)
        for pair in history.pairs()
        if pair.invocation.f == "poll" and pair.invocation.process in members and pair.outcome == "ok"
        for _, read in pair.value
        for key, records in read.items()
        for offset, value in records
    }
    sent = set(sends_of(history))
    assert sent, "nothing was sent"
    assert sent <= polled, f"no member was shown {sorted(sent - polled)[:5]}"


def check_registers(history: History) -> None:
    """Only what may have been written is read, and all final reads agree."""
    written: dict[str, set[int | None]] = defaultdict(lambda: {None})
    finals: dict[str, set[int | None]] = defaultdict(set)
    for pair in history.pairs():
        if pair.invocation.f == "write" and pair.outcome != "fail":
            written[pair.value["k"]].add(pair.value["v"])
    for pair in history.pairs():
        if pair.invocation.f == "read" and pair.outcome == "ok":
            assert pair.value["v"] in written[pair.value["k"]], f"{pair.value} was never written"
            if pair.invocation.final:
                finals[pair.value["k"]].add(pair.value["v"])
    assert finals, "nothing was read in the end"
    assert any(values != {None} for values in finals.values()), "nothing was written"
    assert all(len(values) == 1 for values in finals.values()), f"final reads differ: {dict(finals)}"


def check_counters(history: History) -> None:
    """In the end a counter has all that was acknowledged, and no more than may have been added."""
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for pair in history.pairs():
        if pair.invocation.f == "add" and pair.outcome != "fail":
            most[pair.value["k"]] += pair.value["n"]
            if pair.outcome == "ok":
                least[pair.value["k"]] += pair.value["n"]
    finals = [pair.value for pair in history.pairs() if pair.invocation.f == "read" and pair.invocation.final]
    assert least, "nothing was added"
    assert finals, "nothing was read in the end"
    for read in finals:
        assert least[read["k"]] <= read["n"] <= most[read["k"]], f"{read}: {least[read['k']]} to {most[read['k']]}"


def check_metadata(history: History) -> None:
    """All clients are told the same of each topic in the end."""
    finals: dict[str, set[int | None]] = defaultdict(set)
    changes: Counter[str] = Counter()
    for pair in history.pairs():
        changes[f"{pair.invocation.f} {pair.outcome}"] += 1
        if pair.invocation.f == "describe-topic" and pair.invocation.final and pair.outcome == "ok":
            finals[pair.value["name"]].add(pair.value["partitions"])
    assert changes["create-topic ok"], "no topic was created"
    assert finals, "nothing was looked at in the end"
    assert all(len(counts) == 1 for counts in finals.values()), f"final looks differ: {dict(finals)}"
