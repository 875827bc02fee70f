"""The verdict on a run, by what lies in its folder: the same when the run is made and whenever it is judged again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..checkers.catalogue import checkers_of
from ..checkers.finding import Verdict
from ..checkers.judge import judge
from ..histories.history_file import read_history
from ..histories.operation import History
from ..histories.run_folder import RunFolder
from ..nemeses.limits import Promise, allowances
from ..nemeses.schedule import read_schedule
from .end_of_run import end_of_run

_REPLICAS_MAX: Final = 3


def judge_run(folder: RunFolder, *, workload: str | None = None) -> Verdict:
    """By the checkers of its workload, or of `workload`; by the faults that it was to have, what they allow, and what
    was seen when it was over.

    A folder without `end.json` has nothing of the last. Raises ClusterError where a file is missing or is not as a run
    writes it, LookupError for a workload that has no checkers.
    """
    record = folder.read_record()
    schedule = read_schedule(folder.schedule)
    history = read_history(folder.found_history())
    header = msgspec.structs.replace(history.header, workload=workload or history.header.workload)
    history = History(header, history.operations)
    promise = promise_of(record.properties, replica_count(header.nodes))
    return judge(
        history,
        {**checkers_of(header), "end of the run": end_of_run(folder.read_end())},
        declared=schedule.kinds,
        allowances=allowances(schedule, promise, node_count=header.nodes, events=history.faults()),
    )


def replica_count(node_count: int) -> int:
    """Of each partition of a workload's topics."""
    return min(_REPLICAS_MAX, node_count)


def promise_of(properties: Mapping[str, str], replicas: int) -> Promise:
    """What is promised with these properties of the nodes; clients of workloads ask for acks=all."""
    return Promise(
        replication_factor=replicas,
        min_insync_replicas=min(2, replicas),
        is_flushed=properties.get("log.flush.interval.messages") == "1",
        has_unclean_elections=properties.get("unclean.leader.election.enable", "").lower() == "true",
    )
