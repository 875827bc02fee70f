"""One run: clients use a cluster while it is broken; it heals; they read all there is; a verdict is given on it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from ...client import clock
from ...local.errors import ClusterError, NodeFailedError
from ..checkers.finding import Verdict
from ..histories.history_file import write_history
from ..histories.operation import Operation
from ..histories.run_folder import EndedNode, EndOfRun, RunFolder, RunRecord
from ..nemeses.nemesis import Nemesis
from ..nemeses.schedule import Schedule, draw, read_schedule
from ..report.page import page
from ..report.recorded_run import read_run
from ..workloads.catalogue import WORKLOADS
from ..workloads.client_processes import ClientProcesses, fetch_programs
from ..workloads.workload import Workload, create_topics
from .run_cluster import RunCluster, lacking_kinds, start_cluster
from .run_verdict import judge_run, replica_count
from .wholeness import wait_whole

# What the names of a run's topics begin with.
TOPIC: Final = "chaos"
# After everything has healed, for all replicas to be in sync: a broker's session, and logs that are read anew.
WHOLE_TIMEOUT_S: Final = 120.0


def make_run(record: RunRecord, folder: RunFolder, *, say: Callable[[str], None]) -> Verdict:
    """Starts the cluster that the record asks for, carries the run out and leaves all of it in the folder.

    `say` is told what goes on, a sentence each. Raises ClusterError, NodeFailedError where the run could not be made;
    what goes wrong in it is in the verdict.
    """
    if record.workload not in WORKLOADS:
        raise ClusterError(f"there is no workload {record.workload!r}: it is one of {', '.join(WORKLOADS)}")
    workload = WORKLOADS[record.workload]
    schedule = _schedule(record)
    _refuse_lacking(schedule, lacking_kinds(record.cluster, record.links))
    # Here where there is an internet: clients of a cluster in namespaces, and what starts them, have none.
    fetch_programs(workload)
    folder.create()
    clients = sum(program.count for program in workload.programs)
    with start_cluster(record, folder, client_slots=clients, may_grow="join" in schedule.kinds) as cluster:
        folder.write_record(_as_made(record, cluster, schedule))
        folder.schedule.write_bytes(schedule.encode() + b"\n")
        _carry_out(cluster, workload, schedule, record, folder, say)
    say("judging")
    verdict = judge_run(folder)
    # Whole or not at all: a run that has it is done.
    partial = folder.verdict.with_suffix(".partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(verdict), indent=1) + b"\n")
    partial.replace(folder.verdict)
    folder.report.write_text(page(read_run(folder)), encoding="utf-8")
    return verdict


def _as_made(record: RunRecord, cluster: RunCluster, schedule: Schedule) -> RunRecord:
    """With what is known only now: a schedule from a file has its own length, a cluster of others its own nodes."""
    return msgspec.structs.replace(
        record,
        version=cluster.version,
        seconds=schedule.length_s,
        nodes=record.nodes if record.bootstrap is None else cluster.node_count,
    )


def _schedule(record: RunRecord) -> Schedule:
    if record.schedule is not None:
        return read_schedule(record.schedule_path)
    if record.nemeses:
        return draw(record.seed, record.nemeses, length_s=record.seconds)
    return Schedule(length_s=record.seconds)


def _refuse_lacking(schedule: Schedule, lacking: Mapping[str, str]) -> None:
    refused = [f"{kind}: {lacking[kind]}" for kind in schedule.kinds if kind in lacking]
    if refused:
        raise ClusterError(f"this cluster cannot have {'; '.join(refused)}")


def _carry_out(
    cluster: RunCluster,
    workload: Workload,
    schedule: Schedule,
    record: RunRecord,
    folder: RunFolder,
    say: Callable[[str], None],
) -> None:
    """Leaves the history and its end in the folder."""
    # A cluster that was there before may have had a run before, whose records and groups are not of this one.
    name = TOPIC if record.bootstrap is None else f"{TOPIC}-{secrets.token_hex(4)}"
    create_topics(cluster.looked_at, workload, name, replicas=replica_count(cluster.node_count))
    topics = [name + topic.suffix for topic in workload.topics]
    start_ns = clock.monotonic_ns()
    clients = ClientProcesses(
        workload,
        folder.clients,
        bootstrap=cluster.bootstrap,
        command=cluster.command,
        topic=name,
        seed=record.seed,
        start_ns=start_ns,
    )
    events: Sequence[Operation] = ()
    lacks: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(cluster.sampler(folder.samples, topics, start_ns))
        stack.enter_context(clients)
        say(f"{len(clients)} clients of the workload {workload.name} for {schedule.length_s:g} s")
        # Without faults, too: a node that ends by itself is started again.
        if record.bootstrap is None or schedule.steps:
            path = folder.clients / "nemesis.jsonl"
            nemesis = Nemesis(schedule, cluster.target(topics), path=path, start_ns=start_ns)
            try:
                with nemesis:
                    nemesis.wait()
            except ClusterError as error:
                # What does not come back when all is healed is what a run looks for, and no reason to have none.
                lacks.append(error.sentence if isinstance(error, NodeFailedError) else str(error))
            events = nemesis.operations
        else:
            clock.pause(schedule.length_s)
        missing = wait_whole(cluster.looked_at, brokers=cluster.node_count, timeout_s=WHOLE_TIMEOUT_S)
        say("all has healed; the final reads" if missing is None else f"{missing}; the final reads")
        clients.drain()
        if missing is not None:
            lacks.append(missing)
        # Before anything else may fail: with these the run can be judged.
        header = workload.header(seed=record.seed, nodes=cluster.node_count)
        write_history(folder.history, header, clients.history(others=events))
        folder.write_end(
            EndOfRun(lacks=tuple(lacks), failures=tuple(clients.failures), ended=_ended(cluster, start_ns))
        )


def _ended(cluster: RunCluster, start_ns: int) -> tuple[EndedNode, ...]:
    return tuple(
        EndedNode(
            node=end.node_id,
            time=end.time_ns - start_ns,
            exit_status=end.exit_status,
            sentence=end.sentence,
            log_tail=end.log_tail,
        )
        for end in cluster.ends()
    )
