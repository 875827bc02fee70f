"""One run: clients use a cluster while it is broken; it heals; they read all there is; a verdict is given on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final

import msgspec

from ...client import clock
from ...local.errors import ClusterError
from ..checkers.catalogue import checkers_of
from ..checkers.finding import Verdict
from ..checkers.judge import judge
from ..histories.history_file import write_history
from ..histories.operation import History, Operation
from ..histories.run_folder import RunFolder, RunRecord
from ..nemeses.limits import Promise, allowances
from ..nemeses.nemesis import Nemesis
from ..nemeses.schedule import Schedule, draw, read_schedule
from ..report.page import page
from ..report.recorded_run import read_run
from ..workloads.catalogue import WORKLOADS
from ..workloads.client_processes import ClientProcesses
from ..workloads.workload import Workload, create_topics
from .end_of_run import end_of_run
from .run_cluster import RunCluster, start_cluster
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
    folder.create()
    clients = sum(program.count for program in workload.programs)
    with start_cluster(record, folder, client_slots=clients, may_grow="join" in schedule.kinds) as cluster:
        folder.write_record(msgspec.structs.replace(record, version=cluster.version))
        folder.schedule.write_bytes(schedule.encode() + b"\n")
        verdict = _carry_out(cluster, workload, schedule, record, folder, say)
    folder.verdict.write_bytes(msgspec.json.format(msgspec.json.encode(verdict), indent=1) + b"\n")
    folder.report.write_text(page(read_run(folder)), encoding="utf-8")
    return verdict


def _schedule(record: RunRecord) -> Schedule:
    if record.schedule is not None:
        return read_schedule(record.schedule_path)
    if record.nemeses:
        return draw(record.seed, record.nemeses, length_s=record.seconds)
    return Schedule(length_s=record.seconds)


def _carry_out(
    cluster: RunCluster,
    workload: Workload,
    schedule: Schedule,
    record: RunRecord,
    folder: RunFolder,
    say: Callable[[str], None],
) -> Verdict:
    replicas = min(3, cluster.node_count)
    create_topics(cluster.looked_at, workload, TOPIC, replicas=replicas)
    topics = [TOPIC + topic.suffix for topic in workload.topics]
    start_ns = clock.monotonic_ns()
    clients = ClientProcesses(
        workload, folder.clients, bootstrap=cluster.bootstrap, topic=TOPIC, seed=record.seed, start_ns=start_ns
    )
    events: list[Operation] = []
    with ExitStack() as stack:
        stack.enter_context(cluster.sampler(folder.samples, topics, start_ns))
        stack.enter_context(clients)
        say(f"{len(clients)} clients of the workload {workload.name} for {schedule.length_s:g} s")
        if schedule.steps:
            path = folder.clients / "nemesis.jsonl"
            with Nemesis(schedule, cluster.target(topics), path=path, start_ns=start_ns) as nemesis:
                nemesis.wait()
            events = nemesis.operations
        else:
            clock.pause(schedule.length_s)
        missing = wait_whole(cluster.looked_at, brokers=cluster.node_count, timeout_s=WHOLE_TIMEOUT_S)
        say("all has healed; the final reads")
        clients.drain()
    header = workload.header(seed=record.seed, nodes=cluster.node_count)
    history = History(header, clients.history(others=events))
    write_history(folder.history, header, history.operations)
    say(f"judging {len(history.operations):,} events")
    promise = _promise(record.properties, replicas)
    return judge(
        history,
        {**checkers_of(header), "end of the run": end_of_run(missing, clients.failures)},
        declared=schedule.kinds,
        allowances=allowances(schedule, promise, node_count=cluster.node_count, events=events),
    )


def _promise(properties: Mapping[str, str], replicas: int) -> Promise:
    """What is promised with these settings of the nodes; clients of workloads ask for acks=all."""
    return Promise(
        replication_factor=replicas,
        min_insync_replicas=min(2, replicas),
        is_flushed=properties.get("log.flush.interval.messages") == "1",
        has_unclean_elections=properties.get("unclean.leader.election.enable") == "true",
    )
