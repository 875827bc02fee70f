"""The workloads, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .workload import ClientProgram, Workload, WorkloadTopic

_QUEUE: Final = "queue_client"
_COPIES: Final = "exactly_once_client"
# Compacted while the run lasts.
_COMPACTED: Final[Mapping[str, str]] = {
    "cleanup.policy": "compact",
    "segment.ms": "5000",
    "max.compaction.lag.ms": "5000",
    "min.cleanable.dirty.ratio": "0.01",
}

WORKLOADS: Final[Mapping[str, Workload]] = {
    one.name: one
    for one in (
        Workload(
            name="queue",
            sentence="sends and polls of assigned partitions, idempotent producers, clients that crash",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, count=2),
                ClientProgram(module=_QUEUE, client="aiokafka", count=2),
            ),
            checkers=("queue",),
        ),
        Workload(
            name="queue-java",
            sentence="the queue and its transactions through Apache Kafka's own client (Java) beside librdkafka",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module="QueueClient", client="java", options=("--transactions",)),
                ClientProgram(module="QueueClient", client="java"),
                ClientProgram(module=_QUEUE, options=("--transactions",)),
            ),
            checkers=("queue",),
        ),
        Workload(
            name="queue-subscribe",
            sentence="the queue by members of a group, whose partitions move between them",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, options=("--subscribe",), count=2),
                ClientProgram(module=_QUEUE, client="aiokafka", options=("--subscribe",), count=2),
            ),
            checkers=("queue",),
            subscribes=True,
        ),
        Workload(
            name="queue-transactions",
            sentence="sends and polls as transactions, some of them aborted, of assigned partitions",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, options=("--transactions",), count=2),
                ClientProgram(module=_QUEUE, client="aiokafka", options=("--transactions",), count=2),
            ),
            checkers=("queue",),
            has_transactions=True,
        ),
        Workload(
            name="queue-transactions-subscribe",
            sentence="the same by members of a group, their offsets committed in the transactions",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, options=("--transactions", "--subscribe"), count=2),
                ClientProgram(module=_QUEUE, client="aiokafka", options=("--transactions", "--subscribe"), count=2),
            ),
            checkers=("queue",),
            has_transactions=True,
            subscribes=True,
        ),
        Workload(
            name="idempotent",
            sentence="one idempotent producer for each partition: everything once, in the order of its sends",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, options=("--key-each",), count=2),
                ClientProgram(module=_QUEUE, client="aiokafka", options=("--key-each",), count=2),
            ),
            checkers=("queue", "idempotent"),
        ),
        Workload(
            name="list-append",
            sentence="transactions that append to lists and read them: nothing aborted, partial or reordered",
            topics=(WorkloadTopic(partitions=24),),
            programs=(
                ClientProgram(module="list_append_client", count=2),
                ClientProgram(module="list_append_client", client="aiokafka", count=2),
            ),
            checkers=("list-append",),
            has_transactions=True,
        ),
        Workload(
            name="exactly-once",
            sentence="consume-transform-produce: each input in the output once, whatever is killed",
            topics=(WorkloadTopic(), WorkloadTopic(suffix="-out")),
            programs=(
                ClientProgram(module=_QUEUE, options=("--only-sends",)),
                ClientProgram(module=_COPIES, options=("--role", "copy"), count=2, stage=1),
                ClientProgram(module=_COPIES, client="aiokafka", options=("--role", "read")),
            ),
            checkers=("exactly-once",),
            has_transactions=True,
            subscribes=True,
        ),
        Workload(
            name="group-auto-commit",
            sentence="members of a group that commit by themselves: each record polled at least once",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module=_QUEUE, options=("--only-sends",)),
                ClientProgram(module="group_client", count=2),
                ClientProgram(module="group_client", client="aiokafka", count=2),
            ),
            checkers=("group-auto-commit",),
            subscribes=True,
        ),
        Workload(
            name="register",
            sentence="records of a compacted topic as registers: a read shows the last value written",
            topics=(WorkloadTopic(partitions=3, configs=_COMPACTED),),
            programs=(
                ClientProgram(module="register_client", count=2),
                ClientProgram(module="register_client", client="aiokafka", count=2),
            ),
            checkers=("register",),
        ),
        Workload(
            name="counter",
            sentence="a counter for each client, which all read: what was acknowledged counts once",
            topics=(WorkloadTopic(),),
            programs=(
                ClientProgram(module="counter_client", count=2),
                ClientProgram(module="counter_client", client="aiokafka", count=2),
            ),
            checkers=("counter",),
        ),
        Workload(
            name="metadata",
            sentence="topics made, grown, configured and deleted by all clients: one change at a time",
            # No client uses it: its leaders are those that faults may hit.
            topics=(WorkloadTopic(),),
            programs=(ClientProgram(module="metadata_client", count=4),),
            checkers=("metadata",),
            has_records=False,
        ),
    )
}
