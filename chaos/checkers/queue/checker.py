"""The queue workload judged: sends, polls and transactions against logs of unique values."""

from __future__ import annotations

from typing import Any, Final

from ...histories.operation import Header, History
from ..finding import Checked, Findings
from .columns import OK, SUBSCRIBE, QueueColumns, columns
from .cycles import find_cycles
from .lag import realtime_lag
from .losses import find_losses, has_final_reads, unseen_over_time
from .orders import Orders
from .reads import find_bad_reads, find_polls_out_of_order
from .sends import find_bad_offsets, find_sends_out_of_order

READ_UNCOMMITTED: Final = "read_uncommitted"


def check_queue(history: History) -> Checked:
    """All anomalies of jepsen.tests.kafka, and cycles with read-write edges beside; `docs/correctness.md` lists them
    with the cases that are allowed. Values are unique within a key, and what is sent under one is sent once."""
    header = history.header
    table = columns(history)
    orders = Orders(table)
    findings = Findings()
    find_within_keys(table, orders, findings, header, has_final_reads=has_final_reads(table))
    cycles = find_cycles(table, orders, findings, sees_uncommitted=header.isolation == READ_UNCOMMITTED)
    statistics: dict[str, Any] = {
        "operations": len(table),
        "sends": len(table.send_value),
        "reads": len(table.read_value),
        "unseen": unseen_over_time(table),
        "realtime-lag": realtime_lag(table),
        "consume-counts": consume_counts(table, is_subscribed=header.subscribe),
        "info-txn-causes": table.causes,
        "cycles": cycles,
    }
    return findings.checked(statistics)


def find_within_keys(
    table: QueueColumns, orders: Orders, findings: Findings, header: Header, *, has_final_reads: bool
) -> None:
    """All but cycles: what is found of a key depends on this key's records, on who was assigned what, and on whether
    operations of unknown outcome took place."""
    sees_uncommitted = header.isolation == READ_UNCOMMITTED and header.transactions
    find_bad_offsets(table, orders, findings, is_idempotent=header.idempotent)
    find_losses(table, orders, findings, has_final_reads=has_final_reads)
    find_bad_reads(table, findings, sees_uncommitted=sees_uncommitted)
    find_polls_out_of_order(table, orders, findings, is_subscribed=header.subscribe)
    find_sends_out_of_order(table, orders, findings, is_idempotent=header.idempotent)


def consume_counts(table: QueueColumns, *, is_subscribed: bool) -> dict[str, Any]:
    """How many values a subscribed process consumed once, twice, … : by the count, how many."""
    subscribed = {process for process in range(len(table.process_names)) if is_subscribed}
    counts: dict[tuple[int, int], int] = {}
    for operation in range(len(table)):
        if table.outcome[operation] != OK:
            continue
        process = table.process[operation]
        if table.function[operation] == SUBSCRIBE:
            subscribed.add(process)
        elif process in subscribed:
            for read in table.reads(operation):
                one = process, table.read_value[read]
                counts[one] = counts.get(one, 0) + 1
    distribution: dict[str, int] = {}
    for count in counts.values():
        distribution[str(count)] = distribution.get(str(count), 0) + 1
    return distribution
