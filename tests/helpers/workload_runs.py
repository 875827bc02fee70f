"""Runs of workloads on a cluster that is there, and what any history has to be like."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

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


def final_reads(history: History) -> dict[int | str, set[tuple[str, int, int]]]:
    """Key, offset and value of what each process polled in the end."""
    read: dict[int | str, set[tuple[str, int, int]]] = defaultdict(set)
    for pair in history.pairs():
        if pair.invocation.final and pair.invocation.f == "poll" and pair.outcome == "ok":
            for _, polled in pair.value:
                for key, records in polled.items():
                    read[pair.invocation.process].update((key, offset, value) for offset, value in records)
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
