"""The workloads, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .workload import ClientProgram, Workload, WorkloadTopic

_QUEUE: Final = "queue_client"

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
    )
}
