"""A topic of many partitions: created, answering in every partition, deleted; and what it adds to resident memory."""

from __future__ import annotations

from collections.abc import Mapping

from ...client import clock
from ..target import Target
from ..topics import TIMEOUT_S, admin, create, wait_serving
from ..usage import measured, resident_mib


def topic(target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """Create one topic with one replica, and delete it again."""
    name = f"penstock-bench-{clock.now_ms()}-many"
    client = admin(target.bootstrap)
    client.list_topics(timeout=TIMEOUT_S)  # the connection is not what is measured
    before_mib = resident_mib(target.pids)
    with measured(target.pids) as usage:
        start_s = clock.monotonic_s()
        create(client, name, partitions)
        created_s = clock.monotonic_s() - start_s
        wait_serving(target.bootstrap, name, partitions)
    added_mib = resident_mib(target.pids) - before_mib
    start_s = clock.monotonic_s()
    client.delete_topics([name], operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)
    return {
        "create_s": created_s,
        "serving_s": usage.seconds,
        "delete_s": clock.monotonic_s() - start_s,
        "added_mib": added_mib if target.pids else None,
        "broker_cpu_s": usage.broker_cpu_s,
        "others_cores": usage.others_cores,
    }
